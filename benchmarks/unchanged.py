"""Check that a change of the code left every model as it was: train, predict, and compare with another checkout.

    python benchmarks/unchanged.py write OUT [--texts 10000] [--only linear/debtags …]  one npz file per case
    python benchmarks/unchanged.py compare BEFORE AFTER [--json FILE]     exits with 1 if any list or score differs

Each file holds the ids of the 20 best labels of the held-out texts and their scores. Linear models must be equal bit
for bit; networks are trained for a few steps on the CPU, where the same seed gives the same weights. To compare with
another commit, check it out elsewhere, let `PYTHONPATH` name its `src`, and write with this file.
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

import longtail

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LINEAR = ("linear", "linear/fast", "linear/bonsai", "knn")
ENCODER = {"n_layers": 2, "tokens": {"max_tokens": 32}}
TRAINING = {"epochs": 2.0}
WORDS = {"tokens": {"max_tokens": 64}}
NEURAL: dict[str, dict[str, Any]] = {
    "lightxml": {"encoders": [ENCODER], "training": TRAINING},
    "lightxml:shortlist": {"encoders": [ENCODER], "training": TRAINING, "dense_up_to": 10, "tree": {"max_leaf": 10}},
    "lightxml:two": {"encoders": [ENCODER], "training": {"epochs": 1.0}, "n_seeds": 2},
    "aplc-xlnet": {"encoder": ENCODER, "training": TRAINING},
    "xbert": {"recalls": [{"kind": "transformer", **ENCODER}], "matcher": {"training": TRAINING}},
    "xbert:linear": {"recalls": [{"kind": "linear"}]},
    "treaderxml": {"encoder": WORDS, "training": TRAINING},
    "attentionxml": {"encoder": WORDS, "training": TRAINING},
    "attentionxml:tree": {"encoder": WORDS, "training": TRAINING, "tree": {"n_levels": 1, "max_leaf": 16}},
    "fasttext": {"training": TRAINING},
    "xml-cnn": {"encoder": WORDS, "training": TRAINING},
    "xt": {"training": TRAINING},
}
N_NEURAL_TEXTS = 600


def cases() -> list[tuple[str, str]]:
    """Return (method, data set) of every comparison."""
    large = [(method, data) for data in ("debtags", "tibkat-gnd", "eurlex57k") for method in LINEAR]
    return large + [(method, "bundled") for method in NEURAL]


def lists_of(method: str, data_name: str, n_texts: int | None) -> dict[str, Any]:
    """Train one model and return its 20 best labels of each held-out text, as ids, with their scores."""
    if data_name == "bundled":
        data = longtail.load_dataset(longtail.bundled_datasets()[0])
        train = data.train.take(np.arange(N_NEURAL_TEXTS))
        held_out = data.test
    else:
        data = longtail.load_dataset(SHARED / data_name)
        train, held_out = data.train, data.dev if "dev" in data.splits else data.test
        if n_texts is not None and n_texts < len(train):
            train = train.take(np.sort(np.random.default_rng(0).permutation(len(train))[:n_texts]))
    start = time.perf_counter()
    model = longtail.create_method(method.partition(":")[0], NEURAL.get(method, {})).fit(train)
    seconds = time.perf_counter() - start
    top = model.top_k(held_out, 20)
    ids = np.array([*model.vocabulary_.ids, ""])
    return {
        "labels": ids[top.labels],
        "scores": top.scores,
        "n_train_texts": len(train),
        "fit_s": seconds,
        "predict_s": time.perf_counter() - start - seconds,
        "commit": _commit(),
    }


def _commit() -> str:
    """Return the commit of the code that is measured."""
    where = ["git", "-C", str(Path(longtail.__file__).parent), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()


def write(out: Path, n_texts: int | None, only: list[str]) -> None:
    """Write the lists of all cases, or of those named in `only`."""
    out.mkdir(parents=True, exist_ok=True)
    for method, data_name in cases():
        if only and not any(f"{method}/{data_name}".startswith(name) for name in only):
            continue
        result = lists_of(method, data_name, n_texts)
        np.savez_compressed(out / f"{method.replace('/', '-')}@{data_name}.npz", **result)
        print(f"{method} on {data_name}: {result['fit_s']:.1f} s + {result['predict_s']:.1f} s", flush=True)


def compare(before: Path, after: Path) -> list[dict[str, Any]]:
    """Return one row per case."""
    rows = []
    for file in sorted(before.glob("*.npz")):
        method, _, data = file.stem.rpartition("@")
        row: dict[str, Any] = {"method": method, "data": data, "equal": False}
        rows.append(row)
        if not (after / file.name).exists():
            row["fault"] = "missing"
            continue
        old, new = np.load(file), np.load(after / file.name)
        row |= {"before": str(old["commit"]), "after": str(new["commit"])}
        row |= {"n_train_texts": int(new["n_train_texts"]), "n_texts": len(new["labels"])}
        if old["labels"].shape != new["labels"].shape:
            row["fault"] = f"shapes {old['labels'].shape} and {new['labels'].shape}"
            continue
        finite = np.isfinite(old["scores"]) & np.isfinite(new["scores"])
        gaps = np.abs(np.where(finite, old["scores"], 0) - np.where(finite, new["scores"], 0))
        row["texts_with_other_lists"] = int((old["labels"] != new["labels"]).any(axis=1).sum())
        row["largest_gap_of_scores"] = float(gaps.max())
        row["equal"] = not row["texts_with_other_lists"] and old["scores"].tobytes() == new["scores"].tobytes()
    return rows


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out", type=Path)
    writing.add_argument("--texts", type=int, help="train on this many texts, drawn at random")
    writing.add_argument("--only", nargs="*", default=[], help="beginnings of METHOD/DATA")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--json", type=Path, help="write the rows here as well")
    given = parser.parse_args()
    if given.command == "write":
        write(given.out, given.texts, given.only)
        return 0
    rows = compare(given.before, given.after)
    for row in rows:
        print("equal    " if row["equal"] else "DIFFERENT", *(f"{name}={value}" for name, value in row.items()))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(not row["equal"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
