"""Write data sets and splits to disk, completely or not at all.

    write_dataset(dataset, "folder")   splits, label names and hierarchy in our own layout
    write_split(split, "texts.csv")    one file: .jsonl, .csv, .tsv, .parquet; .gz and .zst too

Files and folders are written under a temporary name and renamed at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from longtail.data.dataset import Dataset, Split
from longtail.data.formats import folder, jsonl, table
from longtail.data.lines import bare_suffix
from longtail.errors import DataError
from longtail.files import whole


def write_dataset(dataset: Dataset, path: str | Path, compression: Literal["", ".gz", ".zst"] = ".zst") -> None:
    """Write a data set as a folder that `load_dataset` reads back.

    Args:
        dataset: The data set; its splits must have texts.
        path: The folder; it must be empty or not exist.
        compression: The suffix that is added to the files of texts.
    """
    path = Path(path)
    featured = next((name for name, split in dataset.splits.items() if not split.has_texts), None)
    if featured is not None:
        raise DataError(f"only texts can be written into a folder, split '{featured}' has only features")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path} exists; choose a new or an empty folder")
    with whole(path, parents=True) as temporary:
        temporary.mkdir()
        folder.write(dataset, temporary, compression)
        if path.exists():
            path.rmdir()


def write_split(split: Split, path: str | Path) -> None:
    """Write a split as one file; the suffixes of `path` choose format and compression."""
    path = Path(path)
    suffix = bare_suffix(path)
    if suffix not in (*folder.SUFFIXES, *table.SUFFIXES):
        known = ", ".join((*folder.SUFFIXES, *table.SUFFIXES))
        raise DataError(f"a file of texts must end in {known} (before .gz or .zst), got {path.name}")
    with whole(path, parents=True) as temporary:
        if suffix in table.SUFFIXES:
            table.write(split, temporary)
        else:
            jsonl.write_jsonl(split, temporary)
