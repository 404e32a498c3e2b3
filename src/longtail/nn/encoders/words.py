"""What encoders of words have in common: a vocabulary learned from the texts, and one vector a word.

    ids (B, T)  ->  vectors of words (B, T, word_width)

Padding has a vector of zeros that never changes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import pyarrow as pa
import torch
from torch import Tensor, nn

from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.persist import Folder
from longtail.progress import SILENT, Progress
from longtail.text.tokens import tokenise
from longtail.text.vectors import DEFAULT_WIDTH, WordVectorOptions, check_source, word_vectors
from longtail.text.words import FIRST_WORD, WordOptions, WordTokeniser

_HEAPS = 0.6
"""Words of n texts grow as n to this power, about."""


class WordEncoderOptions(EncoderOptions):
    """Options of every encoder of words."""

    smaller: ClassVar[tuple[str, ...]] = ("words.max_words", "vectors.width")
    words: WordOptions = WordOptions()
    """Which words have a vector of their own."""
    vectors: WordVectorOptions = WordVectorOptions()
    """Where the vectors of words come from."""


class WordEncoder(Encoder):
    """An encoder with one vector a word; `_build` adds what comes above."""

    tokeniser: WordTokeniser
    n_found = 0
    """Words that came with a vector; the others began at random."""

    def __init__(self, options: Any, tokeniser: WordTokeniser, word_width: int) -> None:
        super().__init__()
        self.options, self.tokeniser, self.word_width = options, tokeniser, word_width
        zeros = torch.zeros(tokeniser.n_ids, word_width)
        self.embedding = nn.Embedding.from_pretrained(zeros, not options.vectors.trainable, tokeniser.pad_id)
        self._build()

    def _build(self) -> None:
        """Make the layers above the words and set `width`."""
        raise NotImplementedError

    @classmethod
    def create(cls, options: Any, texts: pa.Table, seed: int = 0, progress: Progress = SILENT) -> Self:
        """With the words of `texts`; the same seed gives the same weights."""
        check_source(options.vectors)
        tokeniser = WordTokeniser.learn(texts, options.tokens, options.words, progress)

        def tokens() -> Any:
            return tokenise(texts, tokeniser, options.tokens, progress)

        vectors = word_vectors(tokeniser.words, options.vectors, seed, tokens, progress)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoder = cls(options, tokeniser, vectors.table.shape[1])
        encoder.embedding.weight.data.copy_(torch.from_numpy(vectors.table))
        encoder.n_found = vectors.n_found
        return encoder

    @classmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """See `Encoder.restore`."""
        tokeniser = WordTokeniser.load(folder, f"{name}-tokeniser")
        encoder = cls(options, tokeniser, int(facts["word_width"]))
        encoder.n_found = int(facts["n_found"])
        return encoder

    @classmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """See `Encoder.outline`; the words of all texts are guessed from those of the sample by Heaps' law."""
        tokeniser = WordTokeniser.learn(texts, options.tokens, options.words)
        n_words = len(tokeniser.words) * (n_texts / max(len(texts), 1)) ** _HEAPS
        tokeniser.n_ids = FIRST_WORD + min(options.words.max_words, int(n_words))
        with torch.device("meta"):
            return cls(options, tokeniser, options.vectors.width or DEFAULT_WIDTH)

    def facts(self) -> dict[str, Any]:
        """See `Encoder.facts`."""
        return {"n_words": len(self.tokeniser.words), "n_found": self.n_found, "word_width": self.word_width}

    def group_of(self, name: str) -> str:
        """Word vectors learn at their own rate."""
        return "words" if name.startswith("embedding.") else super().group_of(name)

    def vectors_of(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The vectors of words (B, T, word_width); zeros where there is no word, whatever id stands there."""
        vectors: Tensor = self.embedding(ids)
        return vectors if mask is None else vectors * mask[..., None]
