"""Texts in files, cut into blocks and read some at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.blocks import TextReading, count_block, cut_into_blocks, find_files, read_block
from longtail.errors import DataError

READING = TextReading(("text",))


def parquet(path: Path, n: int = 100, row_group_size: int = 30) -> Path:
    table = pa.table({"text": [f"text {row}" for row in range(n)], "number": range(n), "nested": [{"a": [1]}] * n})
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


@settings(max_examples=30)
@given(n=st.integers(0, 90), group=st.integers(1, 100), block=st.integers(1, 50), batch=st.integers(1, 40))
def test_every_row_is_in_one_block_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, n: int, group: int, block: int, batch: int
) -> None:
    file = parquet(tmp_path_factory.mktemp("blocks") / "x.parquet", n, group)
    blocks = cut_into_blocks([file], block)
    assert sum(count_block(one) or 0 for one in blocks) == n
    read = [rows for one in blocks for rows in read_block(one, READING, batch)]
    assert [row for rows in read for row in rows.kept["number"].to_pylist()] == list(range(n))
    assert [text for rows in read for text in rows.texts["text"].to_pylist()] == [f"text {row}" for row in range(n)]
    assert all(len(rows.texts) <= batch for rows in read)


def test_a_large_row_group_is_divided_into_sixteen_blocks_at_most(tmp_path: Path) -> None:
    assert len(cut_into_blocks([parquet(tmp_path / "x.parquet", 100, 100)], 1)) <= 16
    assert len(cut_into_blocks([parquet(tmp_path / "x.parquet", 100, 5)], 1)) == 100


def test_kept_columns_of_parquet_keep_their_types_and_others_are_not_read(tmp_path: Path) -> None:
    file = parquet(tmp_path / "x.parquet", 3)
    [block] = cut_into_blocks([file], 10)
    [whole] = read_block(block, READING)
    assert whole.kept.schema.types == [pa.string(), pa.int64(), pa.struct({"a": pa.list_(pa.int64())})]
    [some] = read_block(block, TextReading(("text",), kept=("number",)))
    assert some.kept.to_pydict() == {"number": [0, 1, 2]}
    [numbers] = read_block(block, TextReading(("text",), kept=(), options={"text_column": "number"}))
    assert numbers.texts.to_pydict() == {"text": ["0", "1", "2"]}


def test_files_that_cannot_be_cut_are_one_block_each(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"title": f"t{n}", "id": f"i{n}"}) + "\n" for n in range(3)))
    (tmp_path / "a.csv").write_text("title,id\nt0,i0\nt1,i1\n")
    (tmp_path / "_note.csv").write_text("no table\n")
    (tmp_path / "readme.md").write_text("nor this\n")
    blocks = cut_into_blocks(find_files(tmp_path), 1)
    assert [block.file.name for block in blocks] == ["a.csv", "b.jsonl"]
    assert [count_block(block) for block in blocks] == [None, 3]
    reading = TextReading(("text",), kept=("id",), options={"text_column": "title"})
    read = [rows for block in blocks for rows in read_block(block, reading)]
    assert [rows.texts["text"].to_pylist() for rows in read] == [["t0", "t1"], ["t0", "t1", "t2"]]
    assert [rows.kept.to_pydict() for rows in read] == [{"id": ["i0", "i1"]}, {"id": ["i0", "i1", "i2"]}]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no .*nothing"):
        find_files(tmp_path / "nothing")
    with pytest.raises(DataError, match="must hold files of texts"):
        find_files(tmp_path)
    file = parquet(tmp_path / "x.parquet")
    [block] = cut_into_blocks([file], 1000)
    with pytest.raises(DataError, match=r"x.parquet must have one column 'body', got the columns text, number, nested"):
        next(read_block(block, TextReading(("text",), options={"text_column": "body"})))
    with pytest.raises(DataError, match=r"must have one column 'nmber'.*did you mean 'number'"):
        next(read_block(block, TextReading(("text",), kept=("nmber",))))
    with pytest.raises(DataError, match="column 'nested' must hold texts"):
        next(read_block(block, TextReading(("text",), options={"text_column": "nested"})))
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"cannot read .*x.parquet"):
        cut_into_blocks([file], 10)
