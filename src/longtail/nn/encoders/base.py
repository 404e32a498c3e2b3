"""What every encoder is: token ids in, one vector a text out.

    ids (B, T) int64, mask (B, T) bool or None  ->  vectors (B, width)

`mask` is true where a token is real; None says that all are, so that the fastest attention can be used. Padding is on
the right and must change nothing; a row without any real token must give finite numbers.

An encoder that `packs` is given texts one after the other in training, without padding between them:

    ids (N,) int64, edges (B + 2,) int32  ->  vectors (B, width)

Text i is `edges[i]` to `edges[i + 1]`; what is left behind the last text, at least one token, fills up a round number.

Some encoders read a scope of labels beside the text: `with_scope` puts it where they do so, among a text's own ids or
into a second input.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from longtail.errors import ConfigError
from longtail.labels.scope import Scope
from longtail.nn.heads.base import Step
from longtail.nn.rows import RowTable
from longtail.options import Options
from longtail.persist import Folder
from longtail.progress import SILENT, Progress
from longtail.text.tokens import Tokeniser, TokenOptions, TokenRows


class EncoderOptions(Options):
    """Options of every encoder; `kind` says which it is."""

    smaller: ClassVar[tuple[str, ...]] = ("model", "trainable_layers")
    """Which of them make it smaller."""
    tokens: TokenOptions = TokenOptions()
    """How texts become tokens."""

    def scope_fault(self) -> str:
        """Why a scope cannot be read with these options, if they say so; nothing where it can."""
        return ""

    def reading(self, fields: str) -> dict[str, Any]:
        """Plain options that read these fields (`title,text`) instead, one after the other."""
        columns = [name.strip() for name in fields.split(",")]
        return {**self.plain(), "tokens": {**self.tokens.plain(), "columns": columns}}


class Encoder(nn.Module):
    """A text encoder with the tokeniser that feeds it."""

    options_class: ClassVar[type[EncoderOptions]]
    width: int
    """Numbers in a text's vector."""
    tokeniser: Tokeniser
    _names: tuple[tuple[str, ...], TokenRows] | None = None

    @classmethod
    @abstractmethod
    def create(cls, options: Any, texts: pa.Table, seed: int = 0, progress: Progress = SILENT) -> Self:
        """A new encoder, pretrained or from scratch; word-level ones learn their vocabulary from `texts`."""

    @classmethod
    @abstractmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """The shape of a saved encoder, with its tokeniser; its weights are loaded by the caller."""

    @classmethod
    @abstractmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """The shape of what `create` would make, without weights (on the `meta` device): for counting costs.

        `texts` are a sample of the `n_texts` training texts.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What `restore` needs beside options and weights, as plain data."""

    def with_scope(self, tokens: TokenRows, scope: Scope) -> TokenRows:
        """Texts as ids, with the labels of their scopes as this encoder reads them."""
        raise ConfigError(
            f"encoder.kind must be transformer or reader to read a label scope, got {type(self).__name__.lower()}; "
            "leave the teacher out"
        )

    def names_of(self, scope: Scope) -> TokenRows:
        """The names of all labels of scopes as ids; made once."""
        if self._names is None or self._names[0] is not scope.names:
            rows = self.tokeniser.encode_names(scope.names)
            ptr = np.cumsum([0, *map(len, rows)])
            ids = np.fromiter((piece for row in rows for piece in row), np.int32, int(ptr[-1]))
            self._names = scope.names, TokenRows(ids, ptr)
        return self._names[1]

    def group_of(self, name: str) -> str:
        """The parameter group (learning rate) that a parameter of this encoder belongs to."""
        return "encoder"

    def tables(self) -> dict[str, RowTable]:
        """What trains itself, by attribute: its optimiser's memory belongs into a checkpoint."""
        return {}

    def step(self, step: Step) -> None:
        """Update what trains itself, with all that gradients came to since the last step."""
        for table in self.tables().values():
            table.update(step.rates["encoder"], step.encoder_decay, step.scale)

    def forget(self) -> None:
        """Drop those gradients: the step will be tried again."""
        for table in self.tables().values():
            table.works = []

    def layers(self) -> nn.ModuleList:
        """Layers that are all alike and worth compiling, if it has such."""
        return nn.ModuleList()

    def packs(self, device: torch.device, kind: torch.dtype | None) -> bool:
        """Whether it is given packed texts in training on a device, with numbers of autocast (None: it is off)."""
        return False

    @abstractmethod
    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """One vector a text."""


def lengths_of(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Real tokens of each text, (B,)."""
    if mask is None:
        return torch.full((ids.shape[0],), ids.shape[1], device=ids.device)
    return mask.sum(1)
