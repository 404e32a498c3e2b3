"""Streams of texts in, Arrow record batches out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, DataError, NotFittedError
from longtail.methods import create_method
from longtail.methods.base import Method


@pytest.fixture(scope="module")
def model(tiny: Callable[..., Dataset]) -> Method:
    return create_method("linear").fit(tiny().train)


@pytest.fixture(scope="module")
def titles(tiny: Callable[..., Dataset]) -> pa.Table:
    texts = tiny(splits=("train", "test")).test.texts["text"]
    return pa.table({"id": range(len(texts)), "text": texts})


def test_batches_hold_what_predict_returns(model: Method, titles: pa.Table, tmp_path: Path) -> None:
    pq.write_table(titles, tmp_path / "x.parquet", row_group_size=7)
    expected = model.predict(titles["text"], k=3)
    streams = [
        tmp_path / "x.parquet",
        str(tmp_path),
        titles,
        titles.to_reader(max_chunksize=4),
        ds.dataset(tmp_path / "x.parquet").scanner(),
        titles.to_pandas(),
    ]
    for stream in streams:
        read = model.predict_batches(stream, k=3, batch_texts=5).read_all()
        assert read["id"].to_pylist() == titles["id"].to_pylist()
        assert read["label_ids"].to_pylist() == [[label.id for label in row] for row in expected]
        assert read["label_names"].to_pylist() == [[label.name for label in row] for row in expected]
        assert read["scores"].to_pylist() == [[label.score for label in row] for row in expected]
        assert read["text"].to_pylist() == titles["text"].to_pylist()


def test_calibrated_models_add_recall_and_route(tiny: Callable[..., Dataset], titles: pa.Table) -> None:
    train = tiny(n_texts=600).train
    model = create_method("linear").fit(train)
    assert model.calibration is not None
    read = model.predict_batches(titles, keep=[]).read_all()
    expected = model.predict(titles["text"])
    assert read.column_names == ["label_ids", "label_names", "scores", "predicted_recall", "route"]
    assert read["predicted_recall"].to_pylist() == expected.predicted_recall
    assert read["route"].to_pylist() == expected.routes


def test_a_text_without_a_label_has_empty_lists(model: Method, titles: pa.Table) -> None:
    read = model.predict_batches(titles, threshold=1e9).read_all()
    assert set(map(tuple, read["label_ids"].to_pylist())) == {()}
    assert set(map(tuple, read["scores"].to_pylist())) == {()}


def test_texts_are_read_while_batches_are_taken(model: Method, titles: pa.Table) -> None:
    n_read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal n_read
        for batch in titles.to_batches(max_chunksize=2):
            n_read += len(batch)
            yield batch

    reader = model.predict_batches(pa.RecordBatchReader.from_batches(titles.schema, batches()))
    assert n_read == 2
    reader.read_next_batch()
    reader.read_next_batch()
    assert n_read == 4


def test_faults_are_told_before_anything_is_taken(model: Method, titles: pa.Table, tmp_path: Path) -> None:
    for wrong, error, message in [
        ({"k": 0}, ConfigError, "k must be"),
        ({"batch_texts": 0}, ConfigError, "batch_texts must be at least 1"),
        ({"keep": ["ID"]}, DataError, "texts must have one column 'ID', got the columns id, text"),
        ({"text_column": "title"}, DataError, "must have one column 'title'"),
        ({"deny": ["lbl"]}, ConfigError, "no label 'lbl'"),
    ]:
        with pytest.raises(error, match=message):
            model.predict_batches(titles, **wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="a stream of Arrow batches, got list; lists go to `predict`"):
        model.predict_batches(["a text"])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="have a column 'scores' of their own; `keep` other columns"):
        model.predict_batches(titles.append_column("scores", titles["id"]))
    with pytest.raises(DataError, match="at least one text"):
        model.predict_batches(titles.slice(0, 0))
    with pytest.raises(NotFittedError):
        create_method("linear").predict_batches(titles)
    pq.write_table(titles, tmp_path / "a.parquet")
    pq.write_table(titles.rename_columns(["number", "text"]), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="all files must have the same columns"):
        model.predict_batches(tmp_path).read_all()
    assert isinstance(model.predict_batches(pd.DataFrame({"text": ["word1a"]})), pa.RecordBatchReader)
