from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.assemble import MOST_LABELS, assemble
from longtail.data.dataset import Split
from longtail.data.formats.batch import Source, Stream, TextBatch, grouped, without_blanks
from longtail.data.load import load_dataset
from longtail.errors import DataError

LABELS = pa.list_(pa.string())


def batch(texts, labels, **more):
    return TextBatch(pa.table({"text": pa.array(texts, pa.string())}), pa.array(labels, LABELS), **more)


def stream(*batches):
    return Stream(Path("a.jsonl"), batches)


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=5), min_size=1, max_size=12), st.integers(1, 5))
def test_batches_make_the_same_split_as_lists(rows, size):
    texts = [f"text {i}" for i in range(len(rows))]
    parts = [batch(texts[s : s + size], rows[s : s + size]) for s in range(0, len(rows), size)]
    made = assemble(Source({"train": stream(*parts)}), "x")
    assert made.train.fingerprint == Split.of(texts, rows).fingerprint


def test_all_splits_share_one_sorted_vocabulary():
    source = Source({"train": stream(batch(["x"], [["c", "a"]])), "test": stream(batch(["y"], [["b", "c"]]))})
    data = assemble(source, "x")
    assert data.vocabulary.ids == ["a", "b", "c"]
    assert data.train.labels[0].tolist() == [0, 2]
    assert data.test.labels[0].tolist() == [1, 2]
    assert data.train.vocabulary is data.test.vocabulary


def test_fields_are_empty_where_missing_and_gone_where_they_hold_something_else():
    one = TextBatch(pa.table({"title": ["t"], "text": ["x"], "odd": ["s"]}), pa.array([["a"]], LABELS))
    two = batch(["y"], [["a"]], not_texts=frozenset({"odd"}))
    texts = assemble(Source({"train": stream(one, two)}), "x").train.texts
    assert texts.to_pydict() == {"text": ["x", "y"], "title": ["t", ""]}


def test_features_of_all_batches_and_splits_are_as_wide_as_the_widest():
    parts = [batch([""], [["a"]], features=sp.csr_matrix(np.ones((1, width), np.float32))) for width in (2, 3)]
    test = batch([""], [[]], features=sp.csr_matrix((1, 5), dtype=np.float32))
    data = assemble(Source({"train": stream(*parts), "test": stream(test)}), "x")
    assert data.train.features.toarray().tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert data.test.features.shape == (1, 5)


def test_a_line_with_more_labels_than_a_text_can_have_is_refused_before_they_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,labels\none,a\ntwo," + ";".join(map(str, range(MOST_LABELS + 1))) + "\n")
    with pytest.raises(DataError, match=r"a\.csv: a text must have at most 100,000 labels, text 2 has 100,001"):
        load_dataset(tmp_path / "a.csv")


def test_a_split_without_texts_is_refused():
    with pytest.raises(DataError, match=r"a\.jsonl must hold at least one text"):
        assemble(Source({"train": stream()}), "x")


def test_blank_labels_are_dropped_and_rows_kept():
    lists = pa.array([[" a ", ""], None, [], ["\t", None, "b"]], LABELS)
    assert without_blanks(lists).to_pylist() == [["a"], [], [], ["b"]]
    assert without_blanks(lists.slice(3)).to_pylist() == [["b"]]
    assert grouped(np.array([1, 1]), pa.array(["a", "b"]), 3).to_pylist() == [[], ["a", "b"], []]
