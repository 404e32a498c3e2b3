"""Texts as token ids: computed once, kept flat, and padded batch by batch.

    texts (n_texts,)  ->  TokenRows: ids (n_tokens,), ptr (n_texts + 1,)

A tokeniser gives every text at least one token, so that no encoder ever reads an empty row. The flat arrays can be
kept as a stage of training: they are then mapped from disk and never computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.data.dataset import TEXT
from longtail.options import Options
from longtail.persist import FolderWriter
from longtail.run.progress import SILENT
from longtail.run.run import Run

_TEXTS_AT_ONCE = 1024


class TokenOptions(Options):
    """How texts become tokens."""

    columns: tuple[str, ...] = Field((TEXT,), min_length=1)
    """The fields of a text that are read, one after the other."""
    max_tokens: PositiveInt = 512
    """Longer texts are cut to so many tokens, special tokens included."""
    lowercase: bool = False
    """Turn texts into lower case before they are tokenised, also for tokenisers that know capitals: LightXML's code."""
    max_words: PositiveInt | None = None
    """Cut texts to so many words, with blanks between, before they are tokenised: LightXML's code."""

    def read(self, texts: pa.Table) -> list[str]:
        """Return each text as one string; fields that it lacks are left out."""
        columns = [texts[name].to_pylist() for name in self.columns if name in texts.column_names]
        strings = [" ".join(field for field in fields if field) for fields in zip(*columns, strict=True)]
        if self.lowercase:
            strings = [text.lower() for text in strings]
        if self.max_words is not None:
            strings = [" ".join(text.split(maxsplit=self.max_words)[: self.max_words]) for text in strings]
        return strings


class TokenReaderOptions(Options):
    """Options of whatever reads texts as tokens."""

    optional_columns: ClassVar[tuple[str, ...]] = ()
    """Further columns that are read if texts have them."""
    tokens: TokenOptions = TokenOptions()
    """How texts become tokens."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that texts must have."""
        return self.tokens.columns

    def options_for_fields(self, fields: str) -> dict[str, Any]:
        """Return plain options that read these fields (`title,text`) one after the other."""
        columns = [name.strip() for name in fields.split(",")]
        return {**self.plain(), "tokens": {**self.tokens.plain(), "columns": columns}}


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The token ids of texts, one after the other."""

    ids: NDArray[Any]  # (n_tokens,) uint16 or int32
    ptr: NDArray[np.int64]  # (n_texts + 1,)
    n_cut: int = 0
    """Texts that were longer than the limit."""
    scope: TokenRows | None = None
    """A second input of each text: token ids of the labels in its scope. Rows may be empty."""
    votes: Any | None = None
    """(n_texts, n_labels) sparse float32: what is added to the logits of labels."""
    clusters: NDArray[np.int32] | None = None
    """(n_texts, n) label clusters that an earlier level recalled for each text, −1 where there are fewer."""
    log_scores: NDArray[np.float32] | None = None
    """(n_texts, n) log scores of `clusters`."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each text."""
        return np.diff(self.ptr)

    def take(self, rows: NDArray[Any]) -> TokenRows:
        """Return the given texts, in the given order."""
        scope = None if self.scope is None else self.scope.take(rows)
        votes, clusters, log_scores = (
            None if values is None else values[rows] for values in (self.votes, self.clusters, self.log_scores)
        )
        chosen = self._runs(self.ptr[rows], self.lengths()[rows])
        return replace(chosen, scope=scope, votes=votes, clusters=clusters, log_scores=log_scores)

    def part(self, first: NDArray[Any] | int, last: NDArray[Any]) -> TokenRows:
        """Return tokens `first` to `last` of each text."""
        return self._runs(self.ptr[:-1] + first, last - first)

    def _runs(self, starts: NDArray[Any], lengths: NDArray[Any]) -> TokenRows:
        """Return so many neighbouring ids for each text."""
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return TokenRows(self.ids[np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1])], ptr)

    def padded(self, rows: NDArray[Any], width: int, pad_id: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return some texts as (n, width) ids, filled with `pad_id` on the right, and their lengths."""
        lengths = np.minimum(self.ptr[rows + 1] - self.ptr[rows], width)
        places = np.arange(width)
        if not len(self.ids):
            return np.full((len(rows), width), pad_id, np.int32), lengths
        flat = np.minimum(self.ptr[rows][:, None] + places, len(self.ids) - 1)
        ids = self.ids[flat].astype(np.int32)
        ids[places >= lengths[:, None]] = pad_id
        return ids, lengths


def side_by_side(readings: Sequence[TokenRows]) -> TokenRows:
    """Return the tokens of each text in all readings, one reading after the other."""
    lengths = np.stack([one.lengths() for one in readings])  # (n_readings, n_texts)
    ptr = np.concatenate([[0], np.cumsum(lengths.sum(0))]).astype(np.int64)
    starts = ptr[:-1] + np.cumsum(lengths, 0) - lengths
    ids = np.empty(ptr[-1], readings[0].ids.dtype)
    for one, start, length in zip(readings, starts, lengths, strict=True):
        ids[np.repeat(start - one.ptr[:-1], length) + np.arange(length.sum())] = one.ids
    return TokenRows(ids, ptr)


@dataclass(frozen=True)
class ExportedTokeniser:
    """A tokeniser as programs without longtail read it."""

    facts: dict[str, Any]
    """How the file is read, as plain data: its `kind`, the `file`, and the `pad_id` behind short texts."""
    content: str
    """What stands in the file."""


class Tokeniser(Protocol):
    """Turns texts into token ids."""

    pad_id: int
    n_ids: int
    """Ids are below this."""
    max_tokens: int
    """No text has more, and batches are never padded beyond it."""

    @property
    def fingerprint(self) -> str:
        """Return a hash of all that decides which ids a text gets."""

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        """Return the ids of each text, at least one, cut to the limit; and how many texts were cut."""

    def places(self, text: str) -> list[tuple[int, int]] | None:
        """Return where each id that `encode` gives a text begins and ends in it; None where that is not known.

        Marks that stand for no characters have empty places.
        """

    def encode_names(self, names: Sequence[str]) -> list[Sequence[int]]:
        """Return the ids of names, without special tokens; a name may have none."""

    def exported(self) -> ExportedTokeniser:
        """Return the tokeniser as programs without longtail read it."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""


def tokenise(
    texts: pa.Table,
    tokeniser: Tokeniser,
    options: TokenOptions = TokenOptions(),  # noqa: B008, which never changes
    run: Run | None = None,
    *,
    stage: str | None = "tokens",
) -> TokenRows:
    """Return the token ids of all texts, kept as the stage of this name; None keeps nothing."""
    run = run or Run()

    def build() -> dict[str, NDArray[Any]]:
        kind = np.uint16 if tokeniser.n_ids <= 1 << 16 else np.int32
        pieces, lengths, n_cut = [np.empty(0, kind)], [np.zeros(1, np.int64)], 0
        with _watched(run, len(texts)) as advance:
            for start in range(0, len(texts), _TEXTS_AT_ONCE):
                rows, cut = tokeniser.encode(options.read(texts.slice(start, _TEXTS_AT_ONCE)))
                lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))
                pieces.append(np.fromiter((i for row in rows for i in row), kind, int(lengths[-1].sum())))
                n_cut += cut
                advance(len(rows))
        ptr = np.cumsum(np.concatenate(lengths))
        return {"ids": np.concatenate(pieces), "ptr": ptr, "n_cut": np.array([n_cut], np.int64)}

    arrays = run.stages.arrays(stage, build)[0] if stage else build()
    return TokenRows(arrays["ids"], arrays["ptr"], int(arrays["n_cut"][0]))


def _watched(run: Run, n_texts: int) -> Any:
    if n_texts <= _TEXTS_AT_ONCE:
        return SILENT.step("tokens")
    return run.progress.step("tokens", n_texts, "texts")
