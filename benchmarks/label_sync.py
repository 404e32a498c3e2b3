"""How long a new release of a vocabulary takes: python benchmarks/label_sync.py --data ../shared/data/eurlex57k

A model with the whole vocabulary of the data is brought to a release of 7,000 of its concepts and 100 new ones: a
twentieth has another name, a fiftieth is replaced by another concept, a fiftieth is deprecated. Results:
results/label_sync.json, in seconds of one process, from reading the file to the written model.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe_run

from longtail.data.load import load_dataset
from longtail.data.skos import read_release
from longtail.data.vocabulary import Vocabulary
from longtail.label_editor import LabelEditor
from longtail.methods import create_method

RESULTS = Path(__file__).parent / "results" / "label_sync.json"
N_CONCEPTS, N_NEW, N_TEXTS = 7000, 100, 4000
PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of a data set with a vocabulary")
    train = load_dataset(parser.parse_args().data).train
    vocabulary = train.official or train.vocabulary
    model = create_method("linear/fast").fit(train.take(np.arange(N_TEXTS)), vocabulary=vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m")
        release = Path(folder) / "release.ttl"
        release.write_text(PREFIXES + "".join(concepts(vocabulary)))
        start = time.perf_counter()
        read = read_release(release, ids="local")
        read_s = time.perf_counter() - start
        report = LabelEditor(f"{folder}/m").sync(read)
        seconds = time.perf_counter() - start
    counts = {action: report.count(action) for action in ("add", "rename", "merge", "retire")}
    figures = {"concepts": len(read.vocabulary), "read_s": read_s, "seconds": seconds, **counts}
    RESULTS.write_text(json.dumps({"run": describe_run(1), **figures}, indent=1) + "\n")
    print(figures)


def concepts(vocabulary: Vocabulary) -> list[str]:
    """Return the concepts of the release as Turtle."""
    lines = []
    for number, (label, name) in enumerate(zip(vocabulary.ids[:N_CONCEPTS], vocabulary.names, strict=False)):
        shown = json.dumps(name + (" (new name)" if number % 20 == 0 else ""))
        more = {1: f" ; dct:isReplacedBy <http://x/{vocabulary.ids[number - 1]}>", 2: " ; owl:deprecated true"}
        lines.append(f"<http://x/{label}> a skos:Concept ; skos:prefLabel {shown}@en{more.get(number % 50, '')} .\n")
    new = (f'<http://x/new{number}> a skos:Concept ; skos:prefLabel "New {number}"@en .\n' for number in range(N_NEW))
    return [*lines, *new]


if __name__ == "__main__":
    main()
