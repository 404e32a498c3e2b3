"""Texts to be tagged are read in blocks, from files and streams, without labels."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longtail.data import texts as reading
from longtail.data.formats import folder, table
from longtail.data.texts import count_texts, read_texts, text_format
from longtail.errors import DataError


def all_of(*args: object, **options: object) -> pa.Table:
    return pa.concat_tables(read_texts(*args, **options))  # type: ignore[arg-type]


def test_every_line_is_a_text_and_blank_lines_count(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("one\n\nthree")
    assert all_of(file)["text"].to_pylist() == ["one", "", "three"]
    assert count_texts(file) == 3


def test_json_lines_need_no_labels_and_those_that_are_there_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "one", "title": "a", "labels": ["x"]}\n{"title": "b", "text": "two"}\n')
    read = all_of(file, ("text", "title"))
    assert read.select(["text", "title"]).to_pylist() == [
        {"text": "one", "title": "a"},
        {"text": "two", "title": "b"},
    ]
    assert "labels" not in read.column_names


def test_tables_need_no_labels_and_give_the_columns_asked_for(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text('id,body,title\n1,"a, b",x\n2,c,y\n')
    read = all_of(tmp_path / "texts.csv", ("text", "title"), text_column="body")
    assert read.to_pydict() == {"text": ["a, b", "c"], "id": ["1", "2"], "title": ["x", "y"]}
    pq.write_table(pa.table({"text": ["p"], "n": [1]}), tmp_path / "texts.parquet")
    assert all_of(tmp_path / "texts.parquet").to_pydict() == {"text": ["p"]}
    assert all_of(tmp_path / "texts.parquet", ("text", "n")).to_pydict() == {"text": ["p"], "n": ["1"]}
    (tmp_path / "texts.jsonl").write_text('{"text": "p", "n": 1}\n{"text": "q", "n": "b"}\n{"text": "r", "n": 2}\n')
    assert all_of(tmp_path / "texts.jsonl", ("text", "n"))["n"].to_pylist() == ["1", "b", "2"]
    assert all_of(tmp_path / "texts.csv", ("title", "body"), text_column="body")["body"].to_pylist() == ["a, b", "c"]
    assert count_texts(tmp_path / "texts.csv") is None


def test_a_stream_is_answered_as_its_lines_come() -> None:
    class Typed(io.BytesIO):
        """Gives a line a call, as a terminal does."""

        def read1(self, size: int | None = -1) -> bytes:
            return self.readline()

    tables = read_texts("standard input", stream=Typed(b"one\ntwo\n"), format="lines")
    assert [len(table) for table in tables] == [1, 1]
    rows = all_of("standard input", stream=io.BufferedReader(io.BytesIO(b'{"text": "x"}\n')), format="jsonl")  # type: ignore[arg-type]
    assert rows["text"].to_pylist() == ["x"]


def test_many_texts_come_in_batches_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"text {i}\n" for i in range(10)))
    tables = list(read_texts(tmp_path / "t.txt", batch_texts=4))
    assert [len(table) for table in tables] == [4, 4, 2]
    assert pa.concat_tables(tables)["text"].to_pylist() == [f"text {i}" for i in range(10)]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("t.txt", b"", ("text",), "t.txt must hold at least one text, it is empty"),
        ("t.txt", b"ok\n\xff\xfe\n", ("text",), "t.txt:2: column 1: must be UTF-8, got byte 0xff"),
        ("t.txt", b"ok\n", ("text", "title"), "the field 'title' is wanted, which is not there; a plain line"),
        ("t.jsonl", b'{"text": "a"}\n', ("text", "title"), "the field 'title' is wanted, which is not there"),
        ("t.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', ("text",), 't.jsonl:2: must have "text", got "txt"'),
        ("t.csv", b"body\nx\n", ("text",), "must have one column 'text', got the columns body"),
    ],
)
def test_faults_name_the_file(
    tmp_path: Path, name: str, content: bytes, columns: tuple[str, ...], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        all_of(tmp_path / name, columns)


def test_bad_bytes_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"a\xffb\n")
    assert all_of(tmp_path / "t.txt", on_bad_utf8="replace")["text"].to_pylist() == ["a\ufffdb"]


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        all_of(tmp_path / "none.txt")
    with pytest.raises(DataError, match="tables must be files"):
        all_of("standard input", stream=io.BytesIO(b"text\n"), format="table")


@pytest.mark.parametrize(
    ("name", "format"), [("a.csv.gz", "table"), ("a.jsonl.zst", "jsonl"), ("a.txt", "lines"), ("a", "lines")]
)
def test_a_name_tells_the_format(name: str, format: str) -> None:
    assert text_format(Path(name)) == format


def test_names_of_files_mean_the_same_here_and_where_data_sets_are_read() -> None:
    assert set(reading.JSON_LINES) == set(folder.SUFFIXES)
    assert set(reading.TABLES) == set(table.SUFFIXES)
