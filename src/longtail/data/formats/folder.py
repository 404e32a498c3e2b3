"""longtail's own layout: a folder of JSON lines with label names and a hierarchy; or one file of JSON lines.

    train.jsonl.zst  dev.jsonl.zst  test.jsonl.zst    texts; plain, .gz or .zst (see jsonl.py)
    labels.txt                                        labels of this data set: id, name, alternatives
    vocabulary.txt                                    the vocabulary that they are taken from
    hierarchy.tsv                                     child, parent

All but one of the splits may be missing.
"""

from __future__ import annotations

from pathlib import Path

from longtail.data.dataset import Dataset
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import Source, Stream
from longtail.data.formats.jsonl import JsonlOptions, read_jsonl, write_jsonl
from longtail.data.formats.splits import need_files, split_files
from longtail.data.names import read_hierarchy, read_names, write_hierarchy, write_names

SUFFIXES = (".jsonl", ".ndjson", ".jsonlines")
LABELS, VOCABULARY, HIERARCHY = "labels.txt", "vocabulary.txt", "hierarchy.tsv"


def fits(path: Path) -> bool:
    """Return whether this is such a folder or file."""
    return bool(split_files(path, SUFFIXES))


def read(path: Path, options: JsonlOptions) -> Source:
    """Return splits, label names and hierarchy of a folder; one split for a file."""
    files = need_files(path, SUFFIXES, "train, dev or test.jsonl (also .gz, .zst)")
    splits = {split: Stream(file, read_jsonl(file, options)) for split, file in files.items()}
    if path.is_file():
        return Source(splits)
    readers = {
        "labels": (LABELS, read_names),
        "official": (VOCABULARY, read_names),
        "hierarchy": (HIERARCHY, read_hierarchy),
    }
    present = {what: path / name for what, (name, _) in readers.items() if (path / name).is_file()}
    vocabularies = {what: readers[what][1](file) for what, file in present.items()}
    return Source(splits, **vocabularies, files={what: str(file) for what, file in present.items()})


def write(dataset: Dataset, path: Path, compression: str = ".zst") -> None:
    """Write the files of a data set into an existing folder."""
    for name, split in dataset.splits.items():
        write_jsonl(split, path / f"{name}.jsonl{compression}")
    write_names(dataset.vocabulary, path / LABELS)
    vocabularies = [dataset.vocabulary]
    if dataset.official is not None:
        write_names(dataset.official, path / VOCABULARY)
        vocabularies.append(dataset.official)
    write_hierarchy(vocabularies, path / HIERARCHY)


FORMATS.register("folder")(Format("JSON lines, or a folder of them with label names", JsonlOptions, fits, read))
