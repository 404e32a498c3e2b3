"""What encoders of words share: a vocabulary learned from the texts, and one vector per word.

    ids (B, T)  ->  vectors of words (B, T, word_width)

The vector of padding is zero and never changes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import pyarrow as pa
import torch
from torch import Tensor, nn

from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.persist import Folder
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows
from longtail.text.vectors import DEFAULT_WIDTH, WordVectorOptions, check_source, word_vectors
from longtail.text.words import FIRST_WORD, WordOptions, WordTokeniser

_HEAPS = 0.6
"""Heaps' law: the vocabulary of n texts grows about as n to this power."""


class WordEncoderOptions(EncoderOptions):
    """Options of every encoder of words."""

    smaller: ClassVar[tuple[str, ...]] = ("words.max_words", "vectors.width")
    words: WordOptions = WordOptions()
    """Which words get their own vector."""
    vectors: WordVectorOptions = WordVectorOptions()
    """Where the vectors of words come from."""


class WordEncoder(Encoder):
    """An encoder with one vector per word; `_build` adds the layers above."""

    tokeniser: WordTokeniser
    n_found = 0
    """Words that were found in a file of vectors; the others start at random."""

    def __init__(self, options: Any, tokeniser: WordTokeniser, word_width: int) -> None:
        super().__init__()
        self.options, self.tokeniser, self.word_width = options, tokeniser, word_width
        zeros = torch.zeros(tokeniser.n_ids, word_width)
        self.embedding = nn.Embedding.from_pretrained(zeros, not options.vectors.trainable, tokeniser.pad_id)
        self._build()

    def _build(self) -> None:
        """Make the layers above the word vectors and set `width`."""
        raise NotImplementedError

    @classmethod
    def create(cls, options: Any, texts: TextReadings, seed: int = 0, run: Run | None = None) -> Self:
        """Return an encoder of the words of `texts`; the same seed gives the same weights."""
        check_source(options.vectors)
        run = run or Run()

        def learn() -> WordTokeniser:
            return WordTokeniser.learn(texts.table, options.tokens, options.words, run)

        def tokens() -> TokenRows:
            return texts.tokens(tokeniser, options.tokens, run, stage="tokens")

        tokeniser = texts.once(("words", options.tokens, options.words), learn)

        vectors = word_vectors(tokeniser.words, options.vectors, seed=seed, tokens=tokens, run=run)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoder = cls(options, tokeniser, vectors.table.shape[1])
        encoder.embedding.weight.data.copy_(torch.from_numpy(vectors.table))
        encoder.n_found = vectors.n_found
        return encoder

    @classmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """Return the shape of a saved encoder with its tokeniser; the caller loads its weights."""
        tokeniser = WordTokeniser.load(folder, f"{name}-tokeniser")
        encoder = cls(options, tokeniser, int(facts["word_width"]))
        encoder.n_found = int(facts["n_found"])
        return encoder

    @classmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """Return the shape without weights; the number of words is estimated from the sample by Heaps' law."""
        tokeniser = WordTokeniser.learn(texts, options.tokens, options.words)
        n_words = len(tokeniser.words) * (n_texts / max(len(texts), 1)) ** _HEAPS
        tokeniser.n_ids = FIRST_WORD + min(options.words.max_words, int(n_words))
        with torch.device("meta"):
            return cls(options, tokeniser, options.vectors.width or DEFAULT_WIDTH)

    def facts(self) -> dict[str, Any]:
        """Return what `restore` needs beside options and weights."""
        return {"n_words": len(self.tokeniser.words), "n_found": self.n_found, "word_width": self.word_width}

    def embeddings(self) -> nn.Module | None:
        """Return the layer of word vectors."""
        layer: nn.Module = self.embedding
        return layer

    def group_of(self, name: str) -> str:
        """Return the parameter group of a parameter; word vectors have their own."""
        return "words" if name.startswith("embedding.") else super().group_of(name)

    def vectors_of(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return word vectors (B, T, word_width); zeros at padding, whatever its ids are."""
        vectors: Tensor = self.embedding(ids)
        return vectors if mask is None else vectors * mask[..., None]
