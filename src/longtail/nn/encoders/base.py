"""Interface of encoders: token ids in, one vector per text out.

    ids (B, T) int64, mask (B, T) bool or None  ->  vectors (B, width)

`mask` is true where a token is real; None means that all are, which allows the fastest attention. Padding is on the
right and must change nothing; a row without any real token must give finite numbers.

An encoder that `packs` reads texts one after the other in training, without padding between them:

    ids (N,) int64, edges (B + 2,) int32  ->  vectors (B, width)

Text i is `edges[i]` to `edges[i + 1]`. After the last text comes padding to a round number, at least one token.

Some encoders read a scope of labels beside the text: `with_scope` adds it to the ids of the text or to a second input.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from pydantic import AfterValidator
from torch import Tensor, nn

from longtail.errors import ConfigError
from longtail.neighbours.scope import Scope
from longtail.nn.heads.base import Step
from longtail.nn.rows import RowTable
from longtail.options import ByKind
from longtail.persist import Folder
from longtail.registry import Registry
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import Tokeniser, TokenReaderOptions, TokenRows


class EncoderOptions(TokenReaderOptions):
    """Options of every encoder; each adds its `kind`."""

    smaller: ClassVar[tuple[str, ...]] = ("model", "trainable_layers")
    """Options that make the encoder smaller."""

    def scope_fault(self) -> str:
        """Return why a scope cannot be read with these options; empty if it can."""
        return ""


class Encoder(nn.Module):
    """A text encoder with the tokeniser that feeds it."""

    options_class: ClassVar[type[EncoderOptions]]
    returns_states: ClassVar[bool] = False
    """Whether `forward` returns a state per token (B, T, width) instead of a vector per text."""
    width: int
    """Width of a text vector, or of a token state."""
    tokeniser: Tokeniser
    _names: tuple[tuple[str, ...], TokenRows] | None = None

    @classmethod
    @abstractmethod
    def create(cls, options: Any, texts: TextReadings, seed: int = 0, run: Run | None = None) -> Self:
        """Return a new encoder, pretrained or from scratch; word-level ones learn their vocabulary from `texts`."""

    @classmethod
    @abstractmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """Return the shape of a saved encoder with its tokeniser; the caller loads its weights."""

    @classmethod
    @abstractmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """Return the shape of what `create` returns, without weights (on the `meta` device), for estimating costs.

        `texts` are a sample of the `n_texts` training texts.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what `restore` needs beside options and weights, as plain data."""

    def with_scope(self, tokens: TokenRows, scope: Scope) -> TokenRows:
        """Return texts as ids, with the labels of their scopes as this encoder reads them."""
        raise ConfigError(
            f"encoder.kind must be transformer or reader to read a label scope, got {type(self).__name__.lower()}; "
            "leave the teacher out"
        )

    def names_of(self, scope: Scope) -> TokenRows:
        """Return the names of all labels of scopes as ids; computed once."""
        if self._names is None or self._names[0] is not scope.names:
            rows = self.tokeniser.encode_names(scope.names)
            ptr = np.cumsum([0, *map(len, rows)])
            ids = np.fromiter((piece for row in rows for piece in row), np.int32, int(ptr[-1]))
            self._names = scope.names, TokenRows(ids, ptr)
        return self._names[1]

    def group_of(self, name: str) -> str:
        """Return the parameter group (learning rate) of a parameter of this encoder."""
        return "encoder"

    def tables(self) -> dict[str, RowTable]:
        """Return what trains itself, by attribute; the state of its optimiser belongs in a checkpoint."""
        return {}

    def step(self, step: Step) -> None:
        """Update what trains itself with the gradients since the last step."""
        for table in self.tables().values():
            table.update(step.rates["encoder"], step.encoder_decay, step.scale)

    def forget(self) -> None:
        """Drop these gradients; the step will be tried again."""
        for table in self.tables().values():
            table.works = []

    def embeddings(self) -> nn.Module | None:
        """Return the layer that turns ids into vectors (B, T, d), if there is one: gradients are followed to it."""
        return None

    def layers(self) -> nn.ModuleList:
        """Return equal layers that are worth compiling, if there are any."""
        return nn.ModuleList()

    def packs(self, device: torch.device, kind: torch.dtype | None) -> bool:
        """Return whether it reads packed texts in training on a device; `kind` is the type of autocast, None if off."""
        return False

    @abstractmethod
    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text."""


ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder",
    {
        "transformer": "longtail.nn.encoders.transformer",
        "bilstm": "longtail.nn.encoders.bilstm",
        "bilstm-states": "longtail.nn.encoders.bilstm_states",
        "cnn": "longtail.nn.encoders.cnn",
        "bag": "longtail.nn.encoders.bag",
        "reader": "longtail.nn.encoders.reader",
    },
)


def encoder_class(options: EncoderOptions) -> type[Encoder]:
    """Return the encoder that options are for."""
    return ENCODERS.get(options.kind)  # type: ignore[attr-defined]


def gives_vectors(options: EncoderOptions) -> EncoderOptions:
    """Return the same options; raise if their encoder returns token states instead of one vector per text."""
    if encoder_class(options).returns_states:
        raise ValueError(f"kind must be an encoder that returns one vector per text, got '{options.plain()['kind']}'")
    return options


AnyEncoderOptions: TypeAlias = Annotated[EncoderOptions, ByKind(ENCODERS), AfterValidator(gives_vectors)]
"""Options of the encoder that their `kind` names; it returns one vector per text."""


def lengths_of(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Return the number of real tokens of each text, (B,)."""
    if mask is None:
        return torch.full((ids.shape[0],), ids.shape[1], device=ids.device)
    return mask.sum(1)
