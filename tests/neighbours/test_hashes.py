"""Copies have the same hash, other texts another one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from longtail.kernels.rows import Rows
from longtail.neighbours import content_hashes, row_hashes


def hashes_of(*texts: str) -> list[int]:
    return content_hashes(pa.table({"text": list(texts)}), ["text"]).tolist()


def test_white_space_and_case_make_no_copy_another_text() -> None:
    first, *others = hashes_of("Red  apple", " red apple\n", "RED\tAPPLE", "red\u00a0apple")
    assert others == [first] * 3


def test_different_texts_have_different_hashes() -> None:
    found = hashes_of("red apple", "redapple", "apple red", "red apples", "réd apple", "", *map(str, range(3000)))
    assert len(set(found)) == len(found)


def test_hashes_are_the_same_in_another_process() -> None:
    code = "import pyarrow as pa; from longtail.neighbours import content_hashes as h"
    shown = f"{code}; print(*h(pa.table({{'text': ['red apple', '']}}), ['text']))"
    ended = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert [int(word) for word in ended.stdout.split()] == hashes_of("red apple", "")


def test_fields_are_told_apart_and_a_missing_one_is_empty() -> None:
    texts = pa.table({"title": ["red", "red apple", ""], "text": ["apple", "", "x"]})
    one, two, three = content_hashes(texts, ["title", "text"])
    assert one != two
    assert content_hashes(texts.select(["text"]), ["title", "text"])[2] == three


def test_rows_are_known_by_columns_and_values() -> None:
    rows = Rows.of(sp.csr_matrix(np.array([[1, 0, 2], [1, 0, 2], [0, 1, 2], [1, 0, 3], [0, 0, 0]], np.float32)))
    found = row_hashes(rows).tolist()
    assert found[0] == found[1]
    assert len(set(found)) == 4
