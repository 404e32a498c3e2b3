"""Two readers, one for a text and one for candidate labels, with attention between them (TReaderXML).

    text    ids (B, T)        ->  E_x (B, T, d)            ->  reader  ->  O_x (B, T, d)
    scope   ids (B, n · T_y)  ->  E_y (B, T_y, d)          ->  reader  ->  O_y (B, T_y, d)
    both    O_y before O_x (B, T_y + T, d)  ->  masked attention  ->  pooled  ->  bottleneck (B, width)

A reader is causal self-attention, a residual, and full self-attention; each of the two has its own weights. E_y is the
mean of the word vectors of all labels of the scope, position by position: of their first words, second words, … A
scope without labels has one learned vector instead. Without a scope, the second reader is not computed
(docs/methods/treaderxml.md#readers).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import ConfigError
from longtail.neighbours.scope import Scope
from longtail.nn.encoders.base import ENCODERS
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions
from longtail.nn.pretrained import find, load_config, load_tokenizer, load_weights, origin_of
from longtail.options import Ablation
from longtail.persist import Folder
from longtail.run.run import Run
from longtail.text.pieces import Pieces
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows

Order = Literal["all", "before", "behind"]
"""Which other positions a position sees."""
_LONGEST_WAVE = 10_000.0
_SMALL = 0.02


class ReaderOptions(WordEncoderOptions):
    """Two readers with attention between them."""

    kind: Literal["reader"] = "reader"
    """Which encoder this is."""
    pieces: str | None = None
    """An encoder (a folder or a name on the hub) whose word pieces and vectors are used instead of words; `words` and
    `vectors` are then ignored, except for `vectors.trainable`."""
    layers: tuple[Literal["masked", "full"], ...] = Field(("masked", "full"), max_length=8)
    """Attention layers of each reader, in order; with none, word vectors are used as they are."""
    residual: Ablation[bool] = True
    """Whether the input of the first layer is added to its output."""
    n_heads: PositiveInt = 4
    """Attention heads; together they are about as wide as a word vector."""
    mask: Ablation[Literal["causal", "anticausal"]] = "causal"
    """`causal`: masked attention sees earlier positions. `anticausal`: later ones (an upper triangular mask); the text
    then never sees the scope, which stands before it."""
    norm: Ablation[bool] = True
    """Whether each attention layer starts with a LayerNorm: the mean over many labels is much shorter than a word
    vector. The paper has none."""
    positions: Literal["learned", "waves", "none"] = "learned"
    """Position encoding: learned vectors, sines and cosines, or none, as in the paper."""
    scope_words: NonNegativeInt = 4
    """Words read of each label name; 0 leaves the second reader out."""
    pooling: Literal["apart", "pool", "flatten"] = "apart"
    """How states become one vector: maximum and mean, over text and scope `apart` or over all positions (`pool`), where
    a long text outweighs its scope; or all of them concatenated (`flatten`)."""
    raw: Ablation[bool] = True
    """Add a projection of the mean word vector to the text vector, because attention ends in a tanh. The paper has
    none."""
    root_weight: Ablation[float] = Field(0.3, ge=0)
    """Multiply means over a text's words by this times the root of their number, which gives longer texts longer
    vectors; 0 leaves means as they are, as in the paper."""
    bottleneck: PositiveInt = 512
    """Width of a text vector."""
    dropout_words: float = Field(0.2, ge=0, lt=1)
    """Dropout of word vectors."""

    def scope_fault(self) -> str:
        """Return why a scope cannot be read with these options; empty if it can."""
        return "" if self.scope_words else "scope_words must be at least 1 to read a label scope, got 0"


@ENCODERS.register("reader")
class Reader(WordEncoder):
    """Two readers with attention between them."""

    options_class: ClassVar[type[WordEncoderOptions]] = ReaderOptions
    tokeniser: Any
    origin: dict[str, Any] | None = None
    """Where the word pieces come from, if it reads pieces."""

    def _build(self) -> None:
        options, d = self.options, self.word_width
        back: Order = "before" if options.mask == "causal" else "behind"
        self.text = _Side(options, d, self.tokeniser.max_tokens, back)
        self.interaction = Attention(d, options.n_heads, back, options.norm)
        n_places = options.scope_words + self.tokeniser.max_tokens
        self.bottleneck = nn.Linear(n_places * d if options.pooling == "flatten" else 2 * d, options.bottleneck)
        self.width = options.bottleneck
        self.raw = nn.Linear(d, options.bottleneck, bias=False) if options.raw else None
        self.scope: _Side | None = None
        if options.scope_words:
            self.scope = _Side(options, d, options.scope_words, back)
            self.nothing = nn.Parameter(torch.randn(d) * _SMALL)
            if options.pooling == "apart":
                self.scope_bottleneck = nn.Linear(2 * d, options.bottleneck, bias=False)

    def with_scope(self, tokens: TokenRows, scope: Scope) -> TokenRows:
        """Return texts with a second input: the first `scope_words` words of each label name, padded."""
        n = self.options.scope_words
        if self.options.scope_fault():
            raise ConfigError(f"encoder.{self.options.scope_fault()}")
        names = self.names_of(scope)
        words, _ = names.padded(np.arange(len(names)), n, self.tokeniser.pad_id)  # (n_scope_labels, n)
        ids = words[scope.labels].ravel().astype(tokens.ids.dtype)
        return replace(tokens, scope=TokenRows(ids, scope.ptr * n))

    def forward(self, ids: Tensor, mask: Tensor | None, scope: Tensor | None = None) -> Tensor:
        """Return one vector per text; `scope` (B, S) are the words of the labels of each text's scope."""
        vectors = self.vectors_of(ids, mask)
        states = self.text(vectors, mask)
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        pooled = self._both(states, mask, real, scope)
        if self.raw is not None:
            pooled = pooled + self.raw(_mean(self.text.dropout(vectors), real, self.options.root_weight))
        return pooled

    def _both(self, states: Tensor, mask: Tensor | None, real: Tensor, scope: Tensor | None) -> Tensor:
        """Return text states and scope, read together and pooled, (B, width)."""
        n_words = states.shape[1]
        if scope is None:
            return self._pooled(self.interaction(states, mask), real, n_words)
        if self.scope is None:
            raise ConfigError(f"encoder.{self.options.scope_fault()}")
        known, has = self.scope_vectors(scope)
        states, real = torch.cat([self.scope(known, has), states], 1), torch.cat([has, real], 1)
        return self._pooled(self.interaction(states, real), real, n_words)

    def scope_vectors(self, scope: Tensor) -> tuple[Tensor, Tensor]:
        """Return E_y (B, T_y, d), and which of its positions have a word (B, T_y): the first ones, at least one."""
        n, pad = self.options.scope_words, self.tokeniser.pad_id
        scope = functional.pad(scope, (0, -scope.shape[1] % n), value=pad).view(len(scope), -1, n)
        is_word = scope != pad  # (B, n_labels, T_y)
        counts = is_word.sum(1)
        vectors = (self.embedding(scope) * is_word[..., None]).sum(1) / counts.clamp(min=1)[..., None]
        first = torch.arange(n, device=scope.device) == 0
        empty = (counts[:, :1] == 0) & first  # (B, T_y)
        vectors = torch.where(empty[..., None], self.nothing.to(vectors.dtype), vectors)
        return vectors, (counts > 0) | empty

    def _pooled(self, states: Tensor, real: Tensor, n_words: int) -> Tensor:
        """Return states (B, T_y + T, d), those of the scope first, as one vector per text (B, width)."""
        n_scope, pooling = states.shape[1] - n_words, self.options.pooling
        if pooling == "flatten":
            ahead = self.options.scope_words - n_scope
            behind = self.bottleneck.in_features // self.word_width - ahead - states.shape[1]
            known = states * real[..., None]
            return cast(Tensor, self.bottleneck(functional.pad(known, (0, 0, ahead, behind)).flatten(1)))
        start = n_scope if pooling == "apart" else 0
        text: Tensor = self.bottleneck(_summary(states[:, start:], real[:, start:], self.options.root_weight))
        return text + self.scope_bottleneck(_summary(states[:, :start], real[:, :start])) if start else text

    @classmethod
    def create(cls, options: Any, texts: TextReadings, seed: int = 0, run: Run | None = None) -> Self:
        """Return a new encoder of the words of `texts`, or of the word pieces that options name."""
        if options.pieces is None:
            return super().create(options, texts, seed, run)
        pretrained = find(options.pieces)
        tokeniser = _pieces(pretrained, options)
        vectors = load_weights(pretrained, add_pooling_layer=False)[0].get_input_embeddings().weight.data
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoder = cls(options, tokeniser, vectors.shape[1])
        n = min(len(vectors), tokeniser.n_ids)
        encoder.embedding.weight.data[:n] = vectors[:n]
        encoder.embedding.weight.data[tokeniser.pad_id] = 0
        encoder.n_found, encoder.origin = n, {"name": options.pieces, "source": pretrained.source}
        return encoder

    @classmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """Return the shape of a saved encoder with its tokeniser; the caller loads its weights."""
        if options.pieces is None:
            return super().restore(options, facts, folder, name)
        tokeniser: Any = Pieces.load(folder, f"{name}-tokeniser")
        tokeniser.check_fits(tokeniser.n_ids)
        encoder = cls(options, tokeniser, int(facts["word_width"]))
        encoder.n_found, encoder.origin = int(facts["n_found"]), origin_of(facts)
        return encoder

    @classmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """Return the shape without weights, for estimating costs."""
        if options.pieces is None:
            return super().outline(options, texts, n_texts)
        pretrained = find(options.pieces)
        config = load_config(pretrained)
        width = int(getattr(config, "embedding_size", None) or config.hidden_size)
        with torch.device("meta"):
            return cls(options, _pieces(pretrained, options), width)

    def facts(self) -> dict[str, Any]:
        """Return what `restore` needs beside options and weights."""
        if self.origin is None:
            return super().facts()
        return {"origin": self.origin, "n_found": self.n_found, "word_width": self.word_width}


class _Side(nn.Module):
    """One reader: position encoding and attention layers."""

    def __init__(self, options: ReaderOptions, width: int, n_places: int, back: Order) -> None:
        super().__init__()
        self.residual, self.kind = options.residual, options.positions
        self.dropout = nn.Dropout(options.dropout_words)
        orders: list[Order] = ["all" if layer == "full" else back for layer in options.layers]
        self.layers = nn.ModuleList(Attention(width, options.n_heads, order, options.norm) for order in orders)
        self.places: nn.Embedding | None = None
        if self.kind == "learned":
            self.places = nn.Embedding(n_places, width)
            nn.init.normal_(self.places.weight, std=_SMALL)

    def placed(self, vectors: Tensor) -> Tensor:
        """Return word vectors (B, T, d) with positions added."""
        n, width = vectors.shape[1:]
        if self.places is not None:
            at = torch.arange(n, device=vectors.device).clamp(max=self.places.num_embeddings - 1)
            return vectors + cast(Tensor, self.places(at))
        return vectors + waves(n, width, vectors.device) if self.kind == "waves" else vectors

    def forward(self, vectors: Tensor, mask: Tensor | None) -> Tensor:
        """Return O (B, T, d) from word vectors (B, T, d); padding comes after all words."""
        states: Tensor = self.dropout(self.placed(vectors))
        for number, layer in enumerate(self.layers):
            attended = layer(states, None if layer.order == "before" else mask)  # causal attention never sees padding
            states = states + attended if self.residual and number == 0 else attended
        return states


class Attention(nn.Module):
    """Multi-head self-attention: tanh(concatenated heads · W)."""

    def __init__(self, width: int, n_heads: int, order: Order, norm: bool = False) -> None:
        super().__init__()
        if n_heads > width:
            raise ConfigError(f"encoder.n_heads must be at most the width of word vectors ({width}), got {n_heads}")
        inner = width // n_heads * n_heads
        self.n_heads, self.order = n_heads, order
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.inner = nn.Linear(width, 3 * inner, bias=False)
        self.outer = nn.Linear(inner, width, bias=False)

    def forward(self, states: Tensor, real: Tensor | None) -> Tensor:
        """Return new states (B, T, d); `real` is false at padding."""
        n_texts, n = states.shape[:2]
        projected = self.inner(self.norm(states)).view(n_texts, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        queries, keys, values = projected
        heads = attend(queries, keys, values, self.order, real)
        attended: Tensor = self.outer(heads.transpose(1, 2).flatten(2)).tanh()
        return attended


def attend(queries: Tensor, keys: Tensor, values: Tensor, order: Order, real: Tensor | None) -> Tensor:
    """Return attention (B, h, T, d_k); each position sees itself and the real positions that `order` allows.

    Seeing itself gives finite numbers to positions that see nothing else: padding, or all of an empty text.
    """
    if real is None and order != "behind":
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=order == "before")
    n = queries.shape[2]
    every = torch.ones(n, n, dtype=torch.bool, device=queries.device)
    allowed = every if order == "all" else every.tril() if order == "before" else every.triu()
    if real is not None:
        itself = torch.eye(n, dtype=torch.bool, device=queries.device)
        allowed = (allowed & real[:, None, None, :]) | itself  # (B, 1, T, T)
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)


def _summary(states: Tensor, real: Tensor, root_weight: float = 0.0) -> Tensor:
    """Return maximum and mean over real positions: (B, T, d) -> (B, 2 d)."""
    most = states.masked_fill(~real[..., None], -1.0).amax(1)  # a tanh is above −1
    return torch.cat([most, _mean(states, real, root_weight)], 1)


def _mean(states: Tensor, real: Tensor, root_weight: float = 0.0) -> Tensor:
    """Return the mean over real positions, scaled by `root_weight`: (B, T, d) -> (B, d)."""
    weight = real[..., None].to(states.dtype)
    count = weight.sum(1).clamp(min=1)
    mean = (states * weight).sum(1) / count
    return mean * (root_weight * count.sqrt()) if root_weight else mean


def waves(n: int, width: int, device: torch.device) -> Tensor:
    """Return sines and cosines of positions (n, width), from short to long wavelengths."""
    slowness = torch.arange(0, width, 2, device=device) * (-math.log(_LONGEST_WAVE) / width)
    angles = torch.arange(n, device=device)[:, None] * slowness.exp()
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :width]


def _pieces(pretrained: Any, options: ReaderOptions) -> Any:
    tokenizer = load_tokenizer(pretrained)
    pad = tokenizer.pad_token_id
    limit = options.tokens.max_tokens
    return Pieces(tokenizer.backend_tokenizer, limit, 0 if pad is None else pad, tokenizer.cls_token_id)
