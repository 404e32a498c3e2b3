"""Columns of texts as bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.run.local import LocalEngine
from longtail.text.columns import SPAN_BYTES, SharedColumns, bytes_of, bytes_of_text, columns_of, spans_of
from longtail.text.fields import FieldOptions, blocks_of

few = settings(max_examples=100)
letters = st.one_of(st.sampled_from("İΣΑσ'.a "), st.characters(exclude_categories=["Cs"]))


def texts_in(data: np.ndarray, offsets: np.ndarray) -> list[str]:
    return [data[start:stop].tobytes().decode() for start, stop in itertools.pairwise(offsets)]


@few
@given(st.lists(st.lists(st.text(letters)), min_size=1), st.data())
def test_rows_come_as_they_are_whatever_their_chunks(chunks: list[list[str]], data: st.DataObject) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks])
    everything = [text for chunk in chunks for text in chunk]
    start = data.draw(st.integers(0, len(everything)))
    stop = data.draw(st.integers(start, len(everything)))
    if start < stop:
        assert texts_in(*bytes_of(column, range(start, stop), False)) == everything[start:stop]


@few
@given(st.lists(st.text(letters), min_size=1))
def test_texts_with_letters_that_need_python_come_in_lower_case(texts: list[str]) -> None:
    found = texts_in(*bytes_of(pa.chunked_array([texts], pa.string()), range(len(texts)), True))
    assert found == [text.lower() if "İ" in text or "Σ" in text else text for text in texts]


def test_bytes_are_arrows_own() -> None:
    array = pa.array(["first", "second", "third"])
    data, offsets = bytes_of(pa.chunked_array([array]), range(1, 3), True)
    assert data.ctypes.data == array.buffers()[2].address
    assert offsets.tolist() == [5, 11, 16]
    assert not data.flags.writeable


@few
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 50))
def test_spans_cover_all_rows_and_are_not_long(sizes: list[int], span_bytes: int) -> None:
    column = pa.chunked_array([["x" * size for size in sizes]], pa.string())
    spans = spans_of([column], span_bytes)
    assert [row for span in spans for row in span] == list(range(len(sizes)))
    assert all(len(span) for span in spans)
    # At most the span's bytes and the text that ends it.
    assert all(
        sum(sizes[row] for row in span) < span_bytes + max(sizes[row] for row in span) for span in spans if sizes
    )


def test_shared_columns_are_the_same_texts() -> None:
    whole = pa.chunked_array([["a", "bc", ""], [], ["größe", "x"]], pa.string())
    columns = [whole, whole.slice(1, 3), pa.chunked_array([], pa.string()), pa.chunked_array([[""]], pa.string())]
    opened = SharedColumns.of(columns, LocalEngine(1)).open()
    assert [column.to_pylist() for column in opened] == [column.to_pylist() for column in columns]
    assert opened[0].chunk(0).buffers()[2].address == whole.chunk(0).buffers()[2].address  # not copied


def test_spans_count_the_bytes_of_all_columns() -> None:
    short, long = (pa.chunked_array([["x" * size] * 4]) for size in (1, SPAN_BYTES))
    assert len(spans_of([short])) == 1
    assert len(spans_of([short, long])) == 4


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(ConfigError, match="column 'title', the texts have only text, abstract"):
        blocks_of("text,title")[1].among(["text", "abstract"])


def test_a_block_reads_its_other_column_only_where_its_own_is_missing() -> None:
    block = FieldOptions(column="title", otherwise="text", max_words=9, otherwise_words=4)
    own, other = (block.among(columns) for columns in (["text", "title"], ["text"]))
    assert (own.column, own.max_words) == ("title", 9)
    assert (other.column, other.max_words) == ("text", 4)


def test_missing_texts_are_empty_and_numbers_are_no_texts() -> None:
    (column,) = columns_of(pa.table({"text": pa.array(["a", None], pa.large_string())}), blocks_of("text"))
    assert column.to_pylist() == ["a", ""]
    with pytest.raises(DataError, match="column 'year' must hold texts"):
        columns_of(pa.table({"year": [1999]}), blocks_of("year"))


def test_one_text_must_be_a_string_of_whole_characters() -> None:
    assert texts_in(*bytes_of_text("ΟΔΟΣ İ", True)) == ["οδος i̇"]
    with pytest.raises(DataError, match="half a character"):
        bytes_of_text("\ud800", True)
    with pytest.raises(DataError, match="got NoneType"):
        bytes_of_text(None, True)  # type: ignore[arg-type]
