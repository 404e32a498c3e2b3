"""Cases of `faults.py` about files that people bring: every reader gets changed bytes, odd words and odd numbers."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from fault_children import Outcome, run_case
from fault_mutations import EXTREMES, TOKENS, changed_bytes

from longtail.data import load_dataset, load_vocabulary
from longtail.data.dataset import Dataset
from longtail.data.vocabulary import Vocabulary
from longtail.methods import create_method

ROWS = [
    ("how long to boil an egg", ["eggs", "boiling"]),
    ("a stone, ü", ["rock"]),
    ('say "hi"', []),
    ("x" * 30, ["eggs"]),
]
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix gnd: <https://example.org/gnd/> .
gnd:1-2 a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en ; skos:altLabel "hound"@en ; skos:broader gnd:3 .
gnd:3 skos:prefLabel "Tier"@de ; skos:narrower gnd:4 ; skos:notation "A" .
"""
RDF = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#"><skos:Concept rdf:about="urn:1"><skos:prefLabel xml:lang="en">dog
</skos:prefLabel><skos:broader rdf:resource="urn:2"/></skos:Concept></rdf:RDF>"""
MOST_TEXTS = 10_000
"""Data sets that grew larger are not trained on."""


def write_files(place: Path) -> dict[str, Path]:
    """Write one small data set per reader; returns what is loaded, by the reader's name."""
    sets = {
        name: place / name for name in ("csv", "jsonl", "parquet", "fasttext", "svmlight", "xmc", "pecos", "rawtext")
    }
    sets |= {name: place / name for name in ("xbert", "skos turtle", "skos xml", "vocabulary tsv", "folder")}
    for folder in sets.values():
        folder.mkdir(parents=True)
    lines = {
        "csv/train.csv": [
            "text,labels",
            *(f'"{t.replace(chr(34), chr(34) * 2)}","{";".join(row)}"' for t, row in ROWS),
        ],
        "jsonl/train.jsonl": [pa_json(t, row) for t, row in ROWS],
        "folder/train.jsonl": [pa_json(t, row) for t, row in ROWS],
        "folder/labels.txt": ["eggs\tEggs\tegg; oeuf", "boiling\tBoiling", "rock\tRock"],
        "folder/hierarchy.tsv": ["eggs\tfood\tFood", "boiling\tcooking"],
        "fasttext/train.txt": [" ".join(f"__label__{one}" for one in row) + f" {t}" for t, row in ROWS],
        "svmlight/train.txt": ["12,7 0:0.5 98:1.25", "3 1:1e-3 5:2", "4 7:1"],
        "xmc/train.txt": ["3 100 31", "12,7 0:0.5 98:1.25", " 5:1", "30 7:1"],
        "rawtext/train_texts.txt": [t for t, _ in ROWS],
        "rawtext/train_labels.txt": [" ".join(row) for _, row in ROWS],
        "xbert/train.txt": [f"{','.join(row)}\t{t}" for t, row in ROWS],
        "pecos/X.trn.txt": [t for t, _ in ROWS],
        "skos turtle/v.ttl": [TURTLE],
        "skos xml/v.rdf": [RDF],
        "vocabulary tsv/v.txt": ["eggs\tEggs\tegg; oeuf", "rock\tRock"],
    }
    for name, content in lines.items():
        (place / name).write_text("\n".join(content) + "\n", encoding="utf-8")
    table = pa.table({"text": [t for t, _ in ROWS], "labels": [row for _, row in ROWS]})
    pq.write_table(table, str(place / "parquet" / "train.parquet"))
    draw = np.random.default_rng(0)
    for name, width in (("X.trn.npz", 40), ("Y.trn.npz", 6)):
        sp.save_npz(place / "pecos" / name, sp.random(4, width, 0.4, "csr", np.float32, draw), compressed=False)
    return sets


def pa_json(text: str, labels: list[str]) -> str:
    """Return a line of JSON."""
    import json

    return json.dumps({"text": text, "labels": labels}, ensure_ascii=False)


def npz_changed(draw: random.Random, file: Path) -> None:
    """Change an array of a sparse matrix that scipy wrote, with a container that is whole."""
    arrays: dict[str, Any] = dict(np.load(file, allow_pickle=False))
    name = draw.choice(sorted(arrays))
    array = np.array(arrays[name])
    kind = draw.randrange(4)
    if kind <= 1 and array.size and array.dtype.kind in "if":
        value: Any = draw.choice([*EXTREMES, np.nan, np.inf] if array.dtype.kind == "f" else EXTREMES)
        with np.errstate(over="ignore", invalid="ignore"):
            array.reshape(-1)[draw.randrange(array.size)] = (
                np.array([value], object).astype(np.float64).astype(array.dtype)[0]
            )
    elif kind == 2:
        array = array[: len(array) // 2] if array.ndim else array
    elif array.dtype.kind in "if":
        array = array.astype(draw.choice([np.float64, np.int64, np.int8, np.bool_]))
    arrays[name] = array
    np.savez(file, **arrays)


class Readers:
    """All readers, and a place to attack them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.sets = write_files(place / "readers")

    def names(self) -> list[str]:
        """Return the readers' names."""
        return sorted(self.sets)

    def attack(self, name: str, draw: random.Random) -> Outcome:
        """Change a file of one reader's data, load it and use what was read."""
        folder = self.place / "read"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.sets[name], folder)
        file = draw.choice(sorted(folder.iterdir()))
        if file.suffix == ".npz" and draw.random() < 0.7:
            npz_changed(draw, file)
        elif draw.random() < 0.5:
            file.write_bytes(changed_bytes(draw, file.read_bytes()))
        else:
            file.write_bytes(words_changed(draw, file.read_bytes()))
        case: Callable[[], str] = lambda: use_dataset(folder)  # noqa: E731
        if name.startswith(("skos", "vocabulary")):
            case = lambda: use_vocabulary(load_vocabulary(next(folder.iterdir())))  # noqa: E731
        return run_case(case)


def words_changed(draw: random.Random, content: bytes) -> bytes:
    """Put odd words, lines and numbers between those that are there."""
    for _ in range(draw.choice([1, 1, 2, 5])):
        parts = content.split(draw.choice([b" ", b",", b"\n", b":", b'"', b"\t"]))
        at = draw.randrange(len(parts) + 1)
        kind = draw.randrange(4)
        odd = draw.choice(TOKENS) if draw.random() < 0.7 else str(draw.choice(EXTREMES)).encode()
        if kind == 0:
            parts.insert(at, odd)
        elif kind == 1:
            parts[at : at + 1] = [odd]
        elif kind == 2:
            del parts[at : at + 1]
        else:
            parts[at:at] = parts[at : at + 3] * draw.choice([1, 100])
        content = (
            draw.choice([b" ", b",", b"\n", b":", b'"', b"\t"]).join(parts) if draw.random() < 0.2 else b" ".join(parts)
        )
    return content


def use_dataset(folder: Path) -> str:
    """Load a data set and do with it what commands do."""
    data = load_dataset(folder)
    use_vocabulary(data.vocabulary)
    for split in data.splits.values():
        split.fingerprint, split.labels.texts_per_label(), split.labels.transpose()
        if 0 < len(split) < MOST_TEXTS and split.labels.n_seen() > 1:
            _train(data, split)
    return "changed"


def _train(data: Dataset, split: Any) -> None:
    model = create_method("knn", {}).fit(split, threads=1)
    model.predict(split, 2, threads=1)


def use_vocabulary(vocabulary: Vocabulary) -> str:
    """Read all that is known of labels."""
    vocabulary.position, vocabulary.names, vocabulary.table.validate(full=True)
    for label in range(min(len(vocabulary), 100)):
        vocabulary.alternatives(label), vocabulary.parents(label)
    return "changed"
