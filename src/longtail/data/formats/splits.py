"""Find the files of each split in a folder.

`train.jsonl.zst`, `eurlex_test.txt`, `valid.csv`: a file belongs to a split if its name is one of the
split's names, alone or after `_` or `-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from longtail.data.lines import bare_stem, bare_suffix, first_line
from longtail.errors import DataError

SPLITS = {"train": ("train", "trn"), "dev": ("dev", "valid", "validation", "val"), "test": ("test", "tst")}
"""The splits in their order, and their names in file names."""


def split_files(path: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Return files with one of these suffixes by split; a `path` that is a file is `train` by default."""
    if path.is_file():
        return {_split_of(path) or "train": path} if bare_suffix(path) in suffixes else {}
    by_split: dict[str, Path] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        split = _split_of(file) if bare_suffix(file) in suffixes and file.is_file() else None
        if split is not None and split in by_split:
            raise DataError(f"{path} must have one file for {split}, got {by_split[split].name} and {file.name}")
        if split is not None:
            by_split[split] = file
    return {split: by_split[split] for split in SPLITS if split in by_split}


def begins_with(line: re.Pattern[str], suffixes: tuple[str, ...]) -> Callable[[Path], bool]:
    """Return what says of a path whether a file of some split matches `line` from the start of its first line."""
    return lambda path: any(line.match(first_line(file)) for file in split_files(path, suffixes).values())


def need_files(path: Path, suffixes: tuple[str, ...], wanted: str) -> dict[str, Path]:
    """Return files by split, at least one; a `path` that is a file may have any suffix."""
    return need(path, split_files(path, (bare_suffix(path),) if path.is_file() else suffixes), wanted)


def need(path: Path, files: dict[str, Path], wanted: str) -> dict[str, Path]:
    """Return the files; raise if there are none."""
    if not files:
        raise DataError(f"{path} must hold {wanted}, found none")
    return files


def _split_of(file: Path) -> str | None:
    words = (bare_stem(file).lower(), bare_suffix(file).removeprefix("."))  # train.txt, cooking.train
    for split, names in SPLITS.items():
        if any(word == name or word.endswith((f"_{name}", f"-{name}")) for word in words for name in names):
            return split
    return None
