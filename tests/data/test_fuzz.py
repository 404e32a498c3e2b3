"""Whatever a file holds, readers read it or raise a `LongtailError`: nothing else, and no crash."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail.data.load import load_dataset, load_vocabulary
from longtail.data.texts import read_texts
from longtail.errors import LongtailError

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
JSONL = b'{"text": "one", "labels": ["a", "b"], "title": "t", "n": 1}\n{"text": "two \xc3\xbc", "labels": ["c"]}\n' * 3


def stored(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what is written to a file."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


MATRIX = sp.csr_matrix(np.array([[0, 1, 2], [3, 0, 0]], np.float32))
NPZ = stored(lambda file: sp.save_npz(file, MATRIX))
PLAIN_NPZ = stored(lambda file: sp.save_npz(file, MATRIX, compressed=False))
PARQUET = stored(
    lambda file: pq.write_table(pa.table({"text": ["one", "two"], "labels": [["a"], ["b", "c"]], "n": [1, 2]}), file)
)
TURTLE = f'@prefix s: <{SKOS}> .\n<http://e/1> a s:Concept ; s:prefLabel "dog"@en ; s:broader <http://e/2> .\n'.encode()
XML = (
    f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e "http://e/">]><rdf:RDF xmlns:rdf="{RDF}" xmlns:s="{SKOS}">'
    '<s:Concept rdf:about="&e;1"><s:prefLabel xml:lang="en">dog</s:prefLabel></s:Concept></rdf:RDF>'
).encode()
TRIPLES = f'<http://e/1> <{SKOS}prefLabel> "dog"@en .\n'.encode()
DATA: dict[str, dict[str, bytes]] = {
    "folder": {
        "train.jsonl": JSONL,
        "labels.txt": b"a\tone\tother | names\nb\tB\n",
        "vocabulary.txt": b"a\tone\nc\tb\n",
        "hierarchy.tsv": b"a\tb\tname\nb\tc\n",
    },
    "zstd": {"train.jsonl.zst": zstandard.compress(JSONL)},
    "csv": {"train.csv": b'text,labels,title\n"one, ""1""",a;b,=t\n\'-two,c,\xc3\xbc\n'},
    "parquet": {"train.parquet": PARQUET},
    "pecos": {"X.trn.npz": NPZ, "Y.trn.npz": PLAIN_NPZ, "output-items.txt": b"one\ntwo\nthree\n"},
    "rawtext": {"train_texts.txt": b"one\ntwo\n", "train_labels.txt": b"a b\nc\n"},
    "xmc": {"train.txt": b"2 5 3\n0,1 0:0.5 4:1e3\n2 1:-.5\n"},
    "svmlight": {"train.svm": b"0,1 0:0.5 4:1e3\n2 1:-.5\n7:1\n"},
    "fasttext": {"train.txt": b"__label__a __label__b one two\nthree __label__c\n"},
    "xbert": {"train.txt": b"a,b\tone\n1\ttwo\n", "label_vocab.txt": b"3\tone\n4\ttwo\n"},
}
"""A small data set in each format."""
FORMATS = {"zstd": "folder", "csv": "table", "parquet": "table"}
OTHERS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    "names": ("names.tsv", b"a\tone\tother | names\nb\tB\n", load_vocabulary),
    "turtle": ("t.ttl", TURTLE, load_vocabulary),
    "rdf": ("t.rdf", XML, load_vocabulary),
    "triples": ("t.nt", TRIPLES, load_vocabulary),
    "lines": ("t.txt", b"one\ntwo \xc3\xbc\n", lambda path: list(read_texts(path))),
    "json lines": ("t.jsonl", JSONL, lambda path: list(read_texts(path, ("text", "title")))),
    "table": ("t.csv", b"text,title\none,a\ntwo,b\n", lambda path: list(read_texts(path, ("text", "title")))),
    "parquet": ("t.parquet", PARQUET, lambda path: list(read_texts(path))),
}
"""A small file for each of the other readers."""
PIECES = [
    *(b"", b"\0", b"\r", b"\n", b"\n\n", b"\t", b" ", b",", b";", b":", b'"', b"'", b"{", b"}", b"[", b"]", b"&", b"<"),
    *(b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\x1b[2J", b"null", b"true", b"NaN", b"1e999"),
    *(b"-1", b"inf", b"9" * 20, b"9" * 5000, b"2147483647", b"4294967296", b"0:nan", b"&e;", b"__label__", b"=1+1"),
    *(b"x" * 200_000, b"[" * 2000, b"a," * 2000),
]


@st.composite
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Return a file with a few changes, or something else altogether."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.sampled_from([0, 0, 1, 1, 4, 8, 1000])))
        new = draw(st.sampled_from(PIECES) | st.binary(max_size=8))
        content = content[:start] + new + content[stop:]
    return content


FEW = 40


def fuzz(n_examples: int) -> Callable[[Any], Any]:
    """Run a test on so many examples, a few always the same ones: only campaigns look for faults not yet known."""
    calm = settings(
        max_examples=n_examples,
        derandomize=n_examples <= FEW,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: given(st.data())(calm(test))


def attempt(read: Callable[[], object], files: dict[str, bytes]) -> None:
    """Read; nothing but a `LongtailError` of one line may be raised."""
    try:
        read()
    except LongtailError as error:
        assert str(error), files
        assert not re.search(r"object at 0x", str(error)), error


def change_data(data: st.DataObject, folder: Path, name: str) -> None:
    files = {file: data.draw(changed(content)) for file, content in DATA[name].items()}
    for file, content in files.items():
        (folder / file).write_bytes(content)
    format = data.draw(st.sampled_from([FORMATS.get(name, name), None]))
    attempt(lambda: load_dataset(folder, format=format), files)


def change_other(data: st.DataObject, folder: Path, name: str) -> None:
    if name in ("turtle", "rdf", "triples"):
        pytest.importorskip("rdflib")
    file, content, read = OTHERS[name]
    content = data.draw(changed(content))
    (folder / file).write_bytes(content)
    attempt(lambda: read(folder / file), {file: content})


READERS = [(change_data, name) for name in DATA] + [(change_other, name) for name in OTHERS]


@pytest.mark.parametrize(("change", "name"), READERS)
@fuzz(FEW)
def test_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, change: Callable[..., None], name: str, data: st.DataObject
) -> None:
    change(data, tmp_path_factory.mktemp("files"), name)


@pytest.mark.campaign
@pytest.mark.parametrize(("change", "name"), READERS)
@fuzz(1000)
def test_many_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, change: Callable[..., None], name: str, data: st.DataObject
) -> None:
    change(data, tmp_path_factory.mktemp("files"), name)
