"""JSON lines that Arrow must not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail.data.load import load_dataset
from longtail.errors import DataError


@pytest.mark.parametrize(
    "text", ["null " * 202, "null\n" * 202, "null null\n" * 100, "null\n" * 202 + '{"text": "a"}\n']
)
def test_a_file_that_begins_with_null_is_refused_and_not_parsed_by_arrow(text: str, tmp_path: Path) -> None:
    """Arrow ends the process where the first value is null."""
    (tmp_path / "texts.jsonl").write_text(text)
    with pytest.raises(DataError, match="a line must be one JSON object"):
        load_dataset(tmp_path / "texts.jsonl")
