"""Texts as token ids: made once, kept flat, and padded batch by batch.

    texts (n_texts,)  ->  TokenRows: ids (n_tokens,), ptr (n_texts + 1,)

A tokeniser gives every text at least one token, so that no encoder ever meets an empty row. The flat arrays can be
kept as a stage of training: they are then mapped from disk and never made twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.data.dataset import TEXT
from longtail.options import Options
from longtail.persist import FolderWriter
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages

_TEXTS_AT_ONCE = 1024


class TokenOptions(Options):
    """How texts become tokens."""

    columns: tuple[str, ...] = Field((TEXT,), min_length=1)
    """The fields of a text that are read, one after the other."""
    max_tokens: PositiveInt = 512
    """Longer texts are cut to so many tokens, those that mark their ends counted in."""
    lowercase: bool = False
    """Turn texts into lower case before they are tokenised, also for tokenisers that know capitals: LightXML's code."""
    max_words: PositiveInt | None = None
    """Cut texts to so many words, with blanks between, before they are tokenised: LightXML's code."""

    def read(self, texts: pa.Table) -> list[str]:
        """Each text as one string; fields that it lacks are left out."""
        found = [texts[name].to_pylist() for name in self.columns if name in texts.column_names]
        made = [" ".join(part for part in parts if part) for parts in zip(*found, strict=True)]
        if self.lowercase:
            made = [text.lower() for text in made]
        if self.max_words is not None:
            made = [" ".join(text.split(maxsplit=self.max_words)[: self.max_words]) for text in made]
        return made


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The token ids of texts, one after the other."""

    ids: NDArray[Any]  # (n_tokens,) uint16 or int32
    ptr: NDArray[np.int64]  # (n_texts + 1,)
    n_cut: int = 0
    """Texts that were longer than the limit."""
    scope: TokenRows | None = None
    """A second input of each text: ids that say which labels may be its own. Rows may be empty."""
    votes: Any | None = None
    """(n_texts, n_labels) sparse float32: what is added to the logits of labels."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.diff(self.ptr)

    def take(self, rows: NDArray[Any]) -> TokenRows:
        """The given texts, in the given order."""
        scope = None if self.scope is None else self.scope.take(rows)
        votes = None if self.votes is None else self.votes[rows]
        return replace(self._runs(self.ptr[rows], self.lengths()[rows]), scope=scope, votes=votes)

    def part(self, first: NDArray[Any] | int, last: NDArray[Any]) -> TokenRows:
        """Tokens `first` to `last` of each text."""
        return self._runs(self.ptr[:-1] + first, last - first)

    def _runs(self, starts: NDArray[Any], lengths: NDArray[Any]) -> TokenRows:
        """For each text so many neighbouring ids."""
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return TokenRows(self.ids[np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1])], ptr)

    def padded(self, rows: NDArray[Any], width: int, pad_id: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Some texts as (n, width) ids, filled with `pad_id` on the right, and their lengths."""
        lengths = np.minimum(self.ptr[rows + 1] - self.ptr[rows], width)
        places = np.arange(width)
        if not len(self.ids):
            return np.full((len(rows), width), pad_id, np.int32), lengths
        flat = np.minimum(self.ptr[rows][:, None] + places, len(self.ids) - 1)
        ids = self.ids[flat].astype(np.int32)
        ids[places >= lengths[:, None]] = pad_id
        return ids, lengths


def side_by_side(parts: Sequence[TokenRows]) -> TokenRows:
    """The tokens that each text has in the parts, one part after the other."""
    lengths = np.stack([part.lengths() for part in parts])  # (n_parts, n_texts)
    ptr = np.concatenate([[0], np.cumsum(lengths.sum(0))]).astype(np.int64)
    starts = ptr[:-1] + np.cumsum(lengths, 0) - lengths
    ids = np.empty(ptr[-1], parts[0].ids.dtype)
    for part, start, length in zip(parts, starts, lengths, strict=True):
        ids[np.repeat(start - part.ptr[:-1], length) + np.arange(length.sum())] = part.ids
    return TokenRows(ids, ptr)


class Tokeniser(Protocol):
    """Turns texts into token ids."""

    pad_id: int
    n_ids: int
    """Ids are below this."""
    max_tokens: int
    """No text has more; batches are never padded beyond it, so that encoders have a position for each place."""

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        """The ids of each text, at least one, cut to the limit; and how many texts were cut."""

    def encode_names(self, names: Sequence[str]) -> list[Sequence[int]]:
        """The ids of names, without marks around them; a name of which nothing is left has none."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""


def tokenise(
    texts: pa.Table,
    tokeniser: Tokeniser,
    options: TokenOptions = TokenOptions(),  # noqa: B008, which never changes
    progress: Progress = SILENT,
    stages: Stages = NO_STAGES,
    stage: str = "tokens",
) -> TokenRows:
    """Token ids of all texts, as a stage that is kept."""

    def build() -> dict[str, NDArray[Any]]:
        kind = np.uint16 if tokeniser.n_ids <= 1 << 16 else np.int32
        pieces, lengths, n_cut = [np.empty(0, kind)], [np.zeros(1, np.int64)], 0
        with _watched(progress, len(texts)) as advance:
            for start in range(0, len(texts), _TEXTS_AT_ONCE):
                rows, cut = tokeniser.encode(options.read(texts.slice(start, _TEXTS_AT_ONCE)))
                lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))
                pieces.append(np.fromiter((i for row in rows for i in row), kind, int(lengths[-1].sum())))
                n_cut += cut
                advance(len(rows))
        ptr = np.cumsum(np.concatenate(lengths))
        return {"ids": np.concatenate(pieces), "ptr": ptr, "n_cut": np.array([n_cut], np.int64)}

    made = stages.arrays(stage, build)[0]
    return TokenRows(made["ids"], made["ptr"], int(made["n_cut"][0]))


def _watched(progress: Progress, n_texts: int) -> Any:
    if n_texts <= _TEXTS_AT_ONCE:
        return SILENT.step("tokens")
    return progress.step("tokens", n_texts, "texts")
