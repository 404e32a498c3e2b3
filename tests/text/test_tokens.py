from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.tokens import TokenOptions, TokenRows, tokenise

LISTS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=7), min_size=1, max_size=8)


class Characters:
    """A tokeniser of characters, cut at five; an empty text is one 0."""

    pad_id, n_ids, max_tokens = 0, 256, 5

    def __init__(self) -> None:
        self.n_calls = 0

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        self.n_calls += 1
        return [[ord(c) for c in text[:5]] or [0] for text in texts], sum(len(text) > 5 for text in texts)


def rows_of(lists: list[list[int]]) -> TokenRows:
    return TokenRows(np.concatenate(lists).astype(np.uint16), np.cumsum([0, *map(len, lists)]))


def table(texts: list[str]) -> pa.Table:
    return pa.table({"text": pa.array(texts, pa.string())})


def lists_of(rows: TokenRows) -> list[list[int]]:
    return [rows.ids[a:b].tolist() for a, b in zip(rows.ptr[:-1], rows.ptr[1:], strict=True)]


def test_texts_become_ids_one_after_the_other_and_cuts_are_counted() -> None:
    found = tokenise(table(["ab", "", "abcdefg", "abcde"]), Characters())
    assert lists_of(found) == [[97, 98], [0], [97, 98, 99, 100, 101], [97, 98, 99, 100, 101]]
    assert found.n_cut == 1
    assert found.ids.dtype == np.uint16
    assert found.lengths().tolist() == [2, 1, 5, 5]
    assert len(found) == 4


def test_no_texts_are_no_rows() -> None:
    found = tokenise(table([]), Characters())
    assert len(found) == 0
    assert found.n_cut == 0


def test_ids_that_need_it_are_kept_in_more_bytes() -> None:
    many = Characters()
    many.n_ids = 70_000
    assert tokenise(table(["ab"]), many).ids.dtype == np.int32
    many.n_ids = 1 << 16
    assert tokenise(table(["ab"]), many).ids.dtype == np.uint16


def test_many_texts_are_done_in_portions_that_tell_how_far_they_are() -> None:
    done: list[int] = []

    class Watched:
        @contextmanager
        def step(self, name: str, total: int | None = None, unit: str = "") -> Any:
            assert (name, total, unit) == ("tokens", 2500, "texts")
            yield lambda amount, note="": done.append(amount)

    texts = [chr(97 + i % 26) * (i % 7) for i in range(2500)]
    tokeniser = Characters()
    found = tokenise(table(texts), tokeniser, run=Run(progress=Watched()))
    assert done == [1024, 1024, 452]
    assert lists_of(found) == [[ord(c) for c in text[:5]] or [0] for text in texts]
    assert found.n_cut == sum(len(text) > 5 for text in texts)


def test_a_stage_is_made_once(tmp_path: Path) -> None:
    stages, tokeniser = FolderStages.open(tmp_path / "work", {}, resume=False), Characters()
    first = tokenise(table(["ab", "abcdefg"]), tokeniser, run=Run(stages=stages))
    again = tokenise(table(["ab", "abcdefg"]), tokeniser, run=Run(stages=FolderStages(tmp_path / "work")))
    assert tokeniser.n_calls == 1
    assert lists_of(again) == lists_of(first)
    assert again.n_cut == 1


@given(LISTS, st.data())
def test_taken_texts_are_the_given_ones_in_the_given_order(lists: list[list[int]], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
    assert lists_of(rows_of(lists).take(np.array(wanted, np.int64))) == [lists[i] for i in wanted]


@given(LISTS, st.integers(1, 9), st.data())
def test_padded_texts_are_filled_on_the_right_or_cut(lists: list[list[int]], width: int, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=10))
    ids, lengths = rows_of(lists).padded(np.array(wanted), width, 77)
    assert ids.shape == (len(wanted), width)
    assert ids.dtype == np.int32
    for row, length, text in zip(ids.tolist(), lengths.tolist(), wanted, strict=True):
        own = lists[text][:width]
        assert length == len(own)
        assert row == own + [77] * (width - len(own))


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (["text"], ["one", "three"]),
        (["title"], ["a", ""]),
        (["title", "text"], ["a one", "three"]),
        (["text", "none", "title"], ["one a", "three"]),
    ],
)
def test_fields_are_put_together_and_missing_ones_left_out(columns: list[str], wanted: list[str]) -> None:
    texts = pa.table({"text": ["one", "three"], "title": ["a", None]})
    assert TokenOptions(columns=tuple(columns)).read(texts) == wanted


def test_texts_may_be_put_in_lower_case_and_cut_to_words_before_they_are_tokenised() -> None:
    texts = pa.table({"title": ["Two  Words", None], "text": ["And MORE of them", "One"]})
    options = TokenOptions(columns=("title", "text", "none"))
    assert options.read(texts) == ["Two  Words And MORE of them", "One"]
    as_lightxml = options.model_copy(update={"lowercase": True, "max_words": 3})
    assert as_lightxml.read(texts) == ["two words and", "one"]
    assert lists_of(tokenise(texts, Characters(), as_lightxml)) == [[*map(ord, "two w")], [*map(ord, "one")]]
