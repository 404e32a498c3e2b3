"""Texts and labels as people hold them: lists, arrays, data frames, Hugging Face data sets, indicator matrices."""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from longtail.data.dataset import Split
from longtail.data.inputs import as_labels, as_table, labels_column
from longtail.data.load import load_dataset
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError

COLUMNS = {"text": ["one", "two"], "title": ["a", None], "year": [1, 2], "labels": [["x"], ["y", "z"]]}
TABLES = {
    "arrow": pa.table(COLUMNS),
    "pandas": pd.DataFrame(COLUMNS),
    "pandas with an index": pd.DataFrame(COLUMNS, index=["r1", "r2"]),
    "pandas with Arrow types": pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame(COLUMNS),
    "datasets": datasets.Dataset.from_dict(COLUMNS),
    "datasets, selected": datasets.Dataset.from_dict({k: [*v[::-1], v[0]] for k, v in COLUMNS.items()}).select([1, 0]),
    "records": [{name: COLUMNS[name][row] for name in ("text", "title", "labels")} for row in range(2)],
    "columns": {name: COLUMNS[name] for name in ("text", "title", "labels")},
}


def lists_of(split: Split) -> list[list[str]]:
    return [record["labels"] for record in split]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_any_make_gives_its_texts_and_its_labels(name: str) -> None:
    assert as_table(TABLES[name]).to_pydict() == {"text": ["one", "two"], "title": ["a", ""]}
    split = Split.of(TABLES[name])
    assert lists_of(split) == [["x"], ["y", "z"]]
    assert (
        split.fingerprint
        == Split.of(pa.table({k: COLUMNS[k] for k in ("text", "title")}), COLUMNS["labels"]).fingerprint
    )


@pytest.mark.parametrize(
    "labels",
    [
        [["x"], ["y", "z"]],
        (("x",), {"z", "y"}),
        iter([["x"], ["y", "z"]]),
        [np.array(["x"]), np.array(["y", "z"])],
        np.array([["x"], ["y", "z"]], dtype=object),
        pa.array([["x"], ["y", "z"]]),
        pd.Series([["x"], ["y", "z"]]),
        pl.Series([["x"], ["y", "z"]]),
        datasets.Dataset.from_dict(COLUMNS)["labels"],
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_label_lists_of_any_make_are_read(labels: Any) -> None:
    assert lists_of(Split.of(["one", "two"], labels)) == [["x"], ["y", "z"]]


def test_label_numbers_of_a_hugging_face_data_set_get_their_names() -> None:
    names = datasets.List(datasets.ClassLabel(names=["no", "yes", "perhaps"]))
    features = datasets.Features({"text": datasets.Value("string"), "labels": names})
    data = datasets.Dataset.from_dict({"text": ["one", "two"], "labels": [[2], [0, 1]]}, features=features)
    assert lists_of(Split.of(data)) == [["perhaps"], ["no", "yes"]]


def test_only_tables_have_a_column_of_labels() -> None:
    for texts in (["one"], np.array(["one"]), pa.array(["one"]), pd.Series(["one"]), {"text": ["one"]}, []):
        assert labels_column(texts) is None
    with pytest.raises(DataError, match="labels of the texts"):
        Split.of(["one"])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a;b", "c"], r"labels\[0\] must be a list of label ids, got the string 'a;b'; write \['a;b'\] if"),
        ([["a"], "ab"], r"labels\[1\] must be a list .* got the string 'ab'"),
        ([["a"], None], r"labels\[1\] must be a list of label ids, got None; a text without labels has \[\]"),
        ([["a"], float("nan")], r"labels\[1\] .* got nan \(float\); a text without labels has \[\]"),
        ([["a"], 3], r"labels\[1\] must be a list of label ids, got 3 \(int\)"),
        ([["a"], b"c"], r"labels\[1\] .* got b'c' \(bytes\)"),
        ([["a"], {"b": 1}], r"labels\[1\] .* \(dict\)"),
        ([["a"], ["b", None]], r"labels\[1\]\[1\] must be a string, got None"),
        ([["a"], [float("nan")]], r"labels\[1\]\[0\] must be a string, got nan \(float\)$"),
        ([["a"], [b"b"]], r"labels\[1\]\[0\] must be a string, got b'b' \(bytes\)"),
        ([["a"], [3]], r"labels\[1\]\[0\] must be a string, got 3 \(int\); label ids are strings"),
        ([["a"], [np.int64(3)]], r"labels\[1\]\[0\] must be a string, got .*3.* \(int64\)"),
        ([["a"], [["b"]]], r"labels\[1\]\[0\] must be a string, got \['b'\] \(list\)"),
        ([["a"], ["b", ""]], r"labels\[1\]\[1\] must be a label id, got the empty string ''"),
        ([["a"], [" "]], r"labels\[1\]\[0\] must be a label id, got the empty string ' '"),
        (pa.array([["a"], None]), r"labels\[1\] .* got None"),
        ([0, 1], r"labels\[0\] must be a list of label ids, got 0 \(int\)"),
        (np.array([0, 1]), r"labels\[0\] must be a list"),
        ("ab", r"labels must be lists of label ids, one per text, got 'ab' \(str\)"),
        ({"a": [1]}, r"labels must be lists .* \(dict\)"),
        (3, "labels must be lists"),
        ([["a"]], "as many, got 2 texts and 1 label lists"),
        (pd.DataFrame({"labels": [["a"], ["b"]]}), r"one column per label, got list.* frame\['labels'\]"),
        (pd.DataFrame(index=[0, 1]), r"label ids as names of its columns, got \[\]"),
        ([["a"], ["\ud800"]], r"must be Unicode, got half a character: .*\\ud800"),
        (np.array([["0", "1"], ["1", "1"]]), "rows of 0 and 1 as texts; an indicator matrix must hold numbers"),
        (np.array(["a", "b"]), r"got the string 'a'; write \['a'\] if"),
    ],
)
def test_what_are_no_labels_is_refused_with_its_row(labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Split.of(["one", "two"], labels)


MATRIX = np.array([[0, 1, 0], [1, 1, 0]])


@pytest.mark.parametrize(
    "labels",
    [
        MATRIX,
        MATRIX.astype(bool),
        MATRIX.astype(np.float32),
        sp.csr_matrix(MATRIX),
        sp.coo_array(MATRIX.astype(bool)),
        sp.csc_matrix((np.array([1, 1, 1, 0]), (np.array([0, 1, 1, 0]), np.array([1, 0, 1, 2]))), shape=(2, 3)),
        pd.DataFrame(MATRIX),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_columns_of_an_indicator_matrix_are_labels_by_number(labels: Any) -> None:
    matrix, vocabulary = as_labels(labels, 2)
    assert vocabulary.ids == ["0", "1", "2"]  # the last has no text and keeps its place
    assert np.array_equal(matrix.to_scipy().toarray(), MATRIX)


def test_columns_of_a_matrix_are_the_labels_of_a_given_vocabulary() -> None:
    split = Split.of(["one", "two"], MATRIX, Vocabulary.of(["c", "b", "a"]))
    assert lists_of(split) == [["b"], ["c", "b"]]
    with pytest.raises(DataError, match=r"one column per label of the vocabulary \(2\), got 3 columns"):
        Split.of(["one", "two"], MATRIX, Vocabulary.of(["c", "b"]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_a_frame_are_labels_by_name(frame: Any) -> None:
    labels = frame({"c": [0, 1], "a": [True, False]})
    split = Split.of(["one", "two"], labels)
    assert split.vocabulary.ids == ["c", "a"]
    assert lists_of(split) == [["a"], ["c"]]
    known = Split.of(["one", "two"], labels, Vocabulary.of(["a", "b"]))
    assert known.vocabulary.ids == ["a", "b", "c"]
    assert lists_of(known) == [["a"], ["c"]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([[0, 2], [1, 0]]), r"must hold 0 and 1 only, got 2 in labels\[0, 1\]"),
        (np.array([[0, 1], [np.nan, 0]]), r"got nan in labels\[1, 0\]"),
        (sp.csr_matrix([[0, -1], [1, 0]]), r"got -1 in labels\[0, 1\]"),
        (np.array([[0, 1]]), "got 2 texts and 1 rows of labels"),
        (pd.DataFrame({"a": [1, None], "b": [0, 1]}), r"got nan in labels\[1, 0\]"),
        (pd.DataFrame({"a": [1, 0], "b": ["x", "y"]}), r"got \w*string in column 'b'"),
        (pd.DataFrame(MATRIX, columns=["a", "b", "a"]), "columns of different names.*: Duplicate column names"),
        (pd.DataFrame(MATRIX, columns=["a", "", "c"]), r"label ids as names of its columns, got \['a', '', 'c'\]"),
        (pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(MATRIX)), "plain values .*: Sparse pandas data"),
        (sp.coo_array(MATRIX[0]), r"a row per text and a column per label, got \(3,\)"),
        (MATRIX.astype(object), r"labels\[0\]\[0\] .* an indicator matrix must be a numpy array of numbers"),
    ],
)
def test_what_is_no_indicator_matrix_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Split.of(["one", "two"], labels)


def test_a_column_of_mixed_types_is_refused() -> None:
    with pytest.raises(DataError, match="plain values of one type"):
        as_table(pd.DataFrame({"text": ["one", 2]}))


@pytest.mark.parametrize("texts", [None, 3])
def test_what_are_no_texts_is_refused(texts: Any) -> None:
    with pytest.raises(DataError, match="texts must be a list of texts or a table, got"):
        as_table(texts)


def test_a_table_is_no_data_set() -> None:
    with pytest.raises(DataError, match="data must be a path, a name or texts with labels by part, got DataFrame"):
        load_dataset(pd.DataFrame({"text": ["a"]}))  # type: ignore[arg-type]
