"""The tools that make the bundled data set."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from debian_licences import licence_of_description, read_paragraphs  # noqa: E402
from make_debtags_sample import MAX_WORDS, is_gpl_2, shorten  # noqa: E402

HEADER = "Format: https://example.org/packaging-manuals/copyright-format/1.0/\n"
UPSTREAM = "\nFiles: *\nCopyright: 1999 Upstream\nLicense: Expat\n permission and so on\n .\n more\n"
PACKAGING = "\nFiles: debian/*\nCopyright: 2001, A. One <one@example.org>\n           2002 B. Two\nLicense: GPL-2+\n"


def test_the_licence_of_a_description_is_that_of_the_packaging() -> None:
    assert licence_of_description(HEADER + UPSTREAM + PACKAGING) == ("GPL-2+", "2001, A. One; 2002 B. Two")


def test_without_a_stanza_for_the_packaging_the_general_one_counts() -> None:
    assert licence_of_description(HEADER + UPSTREAM) == ("Expat", "1999 Upstream")
    assert licence_of_description(HEADER + PACKAGING + UPSTREAM) == ("Expat", "1999 Upstream")


@pytest.mark.parametrize(
    "text", ["", "This package is free.\n", UPSTREAM, HEADER, HEADER + "\nFiles: src/*\nLicense: X\n"]
)
def test_a_copyright_file_that_does_not_say_it_by_rule_says_nothing(text: str) -> None:
    assert licence_of_description(text) is None


def test_continuation_lines_stay_in_their_field() -> None:
    assert list(read_paragraphs("A: 1\n 2\n# no\nB: 3\n\n\nC: x:y\n")) == [{"a": "1\n2", "b": "3"}, {"c": "x:y"}]


@pytest.mark.parametrize(
    "licence, free",
    [
        ("GPL-2+", True),
        ("GPL-2", True),
        ("gpl-2.0-or-later", True),
        ("Artistic or GPL-1+", True),
        ("LGPL-2.1+ and GPL-2", True),
        ("GPL-1", False),
        ("GPL-3+", False),
        ("LGPL-3", False),
        ("GPL-2+ and Expat", False),
        ("GPL-2+ or AFL-2.1, and Expat", False),
        ("GPL", False),
        ("", False),
    ],
)
def test_only_what_may_be_used_under_version_2_of_the_gpl_is_kept(licence: str, free: bool) -> None:
    assert is_gpl_2(licence) is free


def test_long_texts_end_with_a_sentence_where_they_can() -> None:
    assert shorten("a  b\nc") == "a b c"
    assert len(shorten("word " * 500).split()) == MAX_WORDS
    assert shorten("word " * 80 + "end. " + "word " * 80).endswith("end.")


def test_the_same_input_makes_the_same_small_data_set(tmp_path: Path) -> None:
    source, debtags = tmp_path / "source", tmp_path / "debtags"
    (debtags / "usr/share/debtags").mkdir(parents=True)
    (debtags / "usr/share/doc/debtags").mkdir(parents=True)
    (debtags / "usr/share/doc/debtags/copyright").write_text("GNU GPL\n")
    vocabulary = "Facet: use\nDescription: Purpose\n\n" + "".join(
        f"Tag: use::{tag}\nDescription: {tag.title()}\n more\n\n" for tag in ("play", "edit", "rare", "TODO", "new")
    )
    (debtags / "usr/share/debtags/vocabulary").write_text(vocabulary)
    tags = ["use::play", "use::edit", "use::rare", "use::TODO"]
    shipped = "".join(f"pkg{i}: {', '.join(tags if i == 0 else [*tags[:2], 'use::TODO'])}\n" for i in range(60))
    (debtags / "usr/share/debtags/tags-current.gz").write_bytes(gzip.compress(shipped.encode()))
    source.mkdir()
    for split, numbers in (("train", range(50)), ("test", range(50, 70))):
        texts = [{"text": f"pkg{i} : does things .", "labels": [*tags, "use::new"]} for i in numbers]
        data = "".join(json.dumps(row) + "\n" for row in texts).encode()
        (source / f"{split}.jsonl.zst").write_bytes(zstandard.compress(data))
    licences = "".join(f"pkg{i}\tsource{i}\t1\t{'GPL-3' if i == 7 else 'GPL-2'}\tSomebody\n" for i in range(70))
    (tmp_path / "licences.tsv").write_text(licences)
    (tmp_path / "gpl").write_text("the GPL\n")
    for output, table in (("one", tmp_path / "licences.tsv"), ("two", tmp_path / "one" / "copyright.tsv.zst")):
        command = [sys.executable, TOOLS / "make_debtags_sample.py", source, tmp_path / output, "--debtags", debtags]
        subprocess.run([*command, "--licences", table, "--gpl2", tmp_path / "gpl"], check=True)
    made = {file.name: file.read_bytes() for file in (tmp_path / "one").iterdir()}
    assert made == {file.name: file.read_bytes() for file in (tmp_path / "two").iterdir()}
    assert made["labels.txt"] == b"use::edit\tPurpose: Edit\tEdit\nuse::play\tPurpose: Play\tPlay\n"
    assert made["hierarchy.tsv"].startswith(b"use::edit\tuse\tPurpose\n")
    texts = [
        json.loads(line)
        for split in ("train", "dev", "test")
        for line in zstandard.decompress(made[f"{split}.jsonl.zst"]).decode().splitlines()
    ]
    assert len(texts) == 40 and all(row["labels"] == ["use::edit", "use::play"] for row in texts)
    assert not [row for row in texts if row["text"].startswith("pkg7 ")]
