"""TF-IDF of longtail beside scikit-learn's on the same texts: python benchmarks/tfidf.py

Unigrams, min_df 2, sublinear, float32. Each measurement is a process of its own, in turn; medians of three. Memory is
the highest above what the process held with the texts loaded; the result, of the same size for both, is part of it.
The matrices are compared entry by entry once a data set.

Results: results/tfidf.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import arguments_of, describe_run
from memory import peak_mb, reset_peak, resident_mb

HERE = Path(__file__).resolve().parent
SYSTEMS = ("longtail", "scikit-learn")


def main() -> None:
    parser = arguments_of(__doc__ or "", data="yso-finna-en,tibkat-gnd,eurlex57k,debtags")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(**json.loads(options.one))))
        return
    results: dict[str, Any] = {"run": describe_run(options.threads), "rounds": options.rounds, "data": {}}
    for data in options.data.split(","):
        folder = str(options.shared.resolve() / "data" / data)
        rounds = [{name: _one(folder, name, options.threads) for name in SYSTEMS} for _ in range(options.rounds)]
        found: dict[str, Any] = {
            name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
            for name in SYSTEMS
        }
        found["largest_difference"] = _one(folder, "difference", options.threads)["largest"]
        found["times_faster"] = round(found["scikit-learn"]["fit_s"] / found["longtail"]["fit_s"], 1)
        results["data"][data] = found
        print(data, json.dumps(found), flush=True)
    (HERE / "results" / "tfidf.json").write_text(json.dumps(results, indent=1) + "\n")


def _one(folder: str, system: str, threads: int) -> dict[str, Any]:
    task = json.dumps({"folder": folder, "system": system, "threads": threads})
    command = [sys.executable, __file__, "--one", task]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]


def _measure(folder: str, system: str, threads: int) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from longtail.data import load_dataset
    from longtail.run.local import LocalEngine
    from longtail.run.run import Run
    from longtail.text.fields import FieldOptions, TfidfOptions
    from longtail.text.tfidf import Tfidf

    table = load_dataset(folder).train.texts.select(["text"])
    ours = Tfidf(TfidfOptions(blocks=(FieldOptions(min_df=2),)))
    theirs = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32)
    run = Run(LocalEngine(threads))
    ours.fit_transform(table.slice(0, 100), run)  # loads the compiled kernels
    if system == "difference":
        matrix = ours.fit_transform(table, run)
        order = np.argsort(np.array(ours.feature_names(), object).astype(str), kind="stable")
        return {"largest": float(abs(matrix[:, order] - theirs.fit_transform(table["text"].to_pylist())).max())}
    texts = table if system == "longtail" else table["text"].to_pylist()
    before = resident_mb()
    reset_peak()
    start = time.perf_counter()
    (ours.fit_transform(texts, run) if system == "longtail" else theirs.fit_transform(texts))
    return {"fit_s": round(time.perf_counter() - start, 3), "memory_mb": round(peak_mb() - before, 1)}


if __name__ == "__main__":
    main()
