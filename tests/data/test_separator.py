"""A separator that is probably another one is said, with what to type."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longtail.data.load import load_dataset
from longtail.data.separator import check_separator

SETS = [group for n in (1, 2, 3) for group in combinations("abcd", n)]  # 14


@pytest.mark.parametrize(("mark", "used"), [(";", ","), (",", ";"), ("|", ";"), ("\t", ";"), (" ", ";")])
def test_labels_that_another_separator_would_make_fewer_of_are_said(
    mark: str, used: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_separator(sorted(mark.join(labels) for labels in SETS), used)
    assert "split there, they would be 4 instead of 14 labels" in caplog.text
    assert f'set `label_separator="{mark}"` if' in caplog.text


@pytest.mark.parametrize(
    "labels",
    [
        ["machine learning", "deep learning", "Smith, John", "Miller, Ann"],
        ["use/editing", "use/viewing", "role/app", "role/lib"],
        ["a", "b", "c,d", *map(str, range(20))],
        [],
    ],
)
def test_names_that_hold_a_mark_are_left_alone(labels: list[str], caplog: pytest.LogCaptureFixture) -> None:
    check_separator(labels, ";")
    assert not caplog.text


def test_lists_written_as_text_are_said(caplog: pytest.LogCaptureFixture) -> None:
    check_separator(["['a', 'b']", "['a']", "[]"], ";")
    assert "are lists written as text; write them as a;b, or as JSON lines" in caplog.text


def test_cells_are_looked_at_and_lists_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    labels = ["a,b", "b,c", "a"]
    pq.write_table(pa.table({"text": ["x"] * 3, "labels": [[label] for label in labels]}), tmp_path / "x.parquet")
    load_dataset(tmp_path / "x.parquet")
    assert not caplog.text
    (tmp_path / "x.csv").write_text("text,labels\n" + "".join(f'x,"{label}"\n' for label in labels))
    load_dataset(tmp_path / "x.csv")
    assert """labels such as 'a,b' hold ',': split there, they would be 3 instead of 3 labels""" in caplog.text
