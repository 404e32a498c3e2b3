"""The data set that comes with longtail: small, named, clean, and free to pass on."""

from __future__ import annotations

import io
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import zstandard

from longtail.data.doctor import examine
from longtail.data.load import bundled_datasets, load_dataset

FOLDER = Path(str(files("longtail.data") / "bundled" / "debtags-sample"))
SPLITS = ("train", "dev", "test")
LARGEST_BYTES = 1_400_000


@cache
def lines(name: str) -> list[str]:
    """The lines of a compressed file."""
    with zstandard.open(FOLDER / name, "rb") as raw:
        return io.TextIOWrapper(raw, "utf-8", newline="\n").read().removesuffix("\n").split("\n")


def rows(split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(f"{split}.jsonl.zst")]


def cells(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (FOLDER / name).read_text("utf-8").splitlines()]


def package(row: dict[str, Any]) -> str:
    return str(row["text"]).split(" : ")[0]


def copyrights() -> dict[str, list[str]]:
    return {line.split("\t")[0]: line.split("\t") for line in lines("copyright.tsv.zst")}


def test_it_is_known_by_name_and_small() -> None:
    assert bundled_datasets() == ["debtags-sample"]
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < LARGEST_BYTES


def test_its_licence_texts_lie_beside_it() -> None:
    assert "GNU GENERAL PUBLIC LICENSE" in (FOLDER / "LICENSE").read_text("utf-8")
    assert "Version 2, June 1991" in (FOLDER / "LICENSE").read_text("utf-8")
    assert "GNU General Public License" in (FOLDER / "LICENSE.debtags").read_text("utf-8")
    assert "GNU General Public License, version 2" in (FOLDER / "SOURCE.md").read_text("utf-8")


def test_every_text_has_its_licence_and_holders_and_nothing_else_has() -> None:
    packages = [package(row) for split in SPLITS for row in rows(split)]
    table = copyrights()
    assert set(packages) == set(table) and len(packages) == len(table)
    assert all(len(row) == 5 and all(row) and "GPL" in row[3].upper() for row in table.values())


def test_no_mail_address_is_passed_on_with_the_names_of_holders() -> None:
    assert not [row for row in copyrights().values() if "@" in row[4]]


def test_no_source_package_and_no_text_is_in_two_splits() -> None:
    table = copyrights()
    sources = {split: {table[package(row)][1] for row in rows(split)} for split in SPLITS}
    texts = {split: {row["text"] for row in rows(split)} for split in SPLITS}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not sources[one] & sources[other] and not texts[one] & texts[other]


def test_every_label_is_named_has_a_facet_and_occurs_in_training() -> None:
    labels = {row[0]: row[1:] for row in cells("labels.txt")}
    parents = {row[0]: row[1:] for row in cells("hierarchy.tsv")}
    used = {label for split in SPLITS for row in rows(split) for label in row["labels"]}
    assert used == set(labels) == set(parents) == {label for row in rows("train") for label in row["labels"]}
    for label, (name, short) in labels.items():
        facet, facet_name = parents[label]
        assert facet == label.split("::")[0] and name == f"{facet_name}: {short}" and name != label
    assert not [label for label in labels if label.endswith("TODO")]


def test_it_loads_with_names_and_parents_and_the_doctor_finds_nothing() -> None:
    data = load_dataset("debtags-sample")
    assert list(data.splits) == list(SPLITS)
    assert data.vocabulary.name_of("suite::gnome") == "Application Suite: GNOME"
    assert data.vocabulary.name_of("suite") == "Application Suite"
    assert examine(data).findings == ()


@pytest.mark.parametrize("split", SPLITS)
def test_every_text_has_words_and_two_labels(split: str) -> None:
    for row in rows(split):
        assert list(row) == ["text", "labels"] and len(row["labels"]) == len(set(row["labels"])) >= 2
        assert 3 < len(row["text"].split()) <= 100
