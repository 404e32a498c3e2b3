"""How training grows with texts and with labels: python benchmarks/scaling.py [--data yso-finna-en]

Trains on 1/8, 1/4, 1/2 and all of the training texts, drawn at random with all their labels; then on all texts with
1/8, 1/4, 1/2 and all of the labels, drawn at random (texts that have none of them are left out). Each is a process
of its own. The exponent is the slope of log seconds over log label assignments (texts with a label, counted once a
label) by least squares: 1 is linear.

Results: results/scaling.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import arguments_of, describe_run
from memory import peak_mb

HERE = Path(__file__).resolve().parent
SHARES = (0.125, 0.25, 0.5, 1.0)


def main() -> None:
    parser = arguments_of(__doc__ or "", data="yso-finna-en")
    parser.add_argument("--methods", default="linear/fast,linear", help="by commas")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_train(**json.loads(options.one))))
        return
    results: dict[str, Any] = {"data": options.data, "run": describe_run(options.threads), "methods": {}}
    for method in options.methods.split(","):
        found = {"texts": [_one(options, method, share, 1.0) for share in SHARES]}
        found["labels"] = [*(_one(options, method, 1.0, share) for share in SHARES[:-1]), found["texts"][-1]]
        exponents = {along: _exponent(rows) for along, rows in found.items()}
        results["methods"][method] = {**found, "exponent": exponents}
        print(f"{method}: seconds grow as assignments to the power of {exponents}")
    (HERE / "results" / "scaling.json").write_text(json.dumps(results, indent=1) + "\n")


def _one(options: argparse.Namespace, method: str, texts: float, labels: float) -> dict[str, Any]:
    task = {"data": str(options.shared.resolve() / "data" / options.data), "method": method, "texts": texts}
    task |= {"labels": labels, "threads": options.threads}
    command = [sys.executable, __file__, "--one", json.dumps(task)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(method, row, flush=True)
    return row  # type: ignore[no-any-return]


def _train(data: str, method: str, texts: float, labels: float, threads: int) -> dict[str, Any]:
    from longtail.data import Split, load_dataset
    from longtail.methods import create_method

    rng = np.random.default_rng(0)
    train = load_dataset(data).train
    train = train.take(np.sort(rng.permutation(len(train))[: round(texts * len(train))]))
    seen = np.flatnonzero(train.labels.texts_per_label())
    kept = np.full(train.labels.n_labels, -1)
    chosen = rng.permutation(seen)[: round(labels * len(seen))]
    kept[chosen] = chosen
    train = Split(train.texts, train.labels.renumber(kept, len(kept)), train.vocabulary)
    train = train.take(np.flatnonzero(train.labels.labels_per_text()))
    start, start_cpu = time.perf_counter(), time.process_time()
    create_method(method).fit(train, threads=threads)
    return {
        "share_of_texts": texts,
        "share_of_labels": labels,
        "n_texts": len(train),
        "n_labels": len(chosen),
        "n_assignments": len(train.labels.indices),
        "train_s": round(time.perf_counter() - start, 2),
        "train_cpu_s": round(time.process_time() - start_cpu, 2),
        "peak_mb": round(peak_mb(), 1),
    }


def _exponent(rows: list[dict[str, Any]]) -> float:
    sizes, seconds = (np.log([row[key] for row in rows]) for key in ("n_assignments", "train_s"))
    return round(float(np.polyfit(sizes, seconds, 1)[0]), 2)


if __name__ == "__main__":
    main()
