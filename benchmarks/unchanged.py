"""Check that a change of the code left every model as it was: train, predict, and compare with another checkout.

    python benchmarks/unchanged.py write OUT [--only linear/debtags …]   one npz file per method and data set
    python benchmarks/unchanged.py compare BEFORE AFTER                  exits with 1 if any list or score differs

Each file holds the ids of the 20 best labels of the held-out texts and their scores. Linear models must be equal bit
for bit; networks are trained for a few steps on the CPU, where the same seed gives the same weights.
"""

from __future__ import annotations

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


def lists_of(method: str, data_name: str) -> dict[str, Any]:
    """Train one model and return its 20 best labels of each held-out text, as ids, with their scores."""
    if data_name == "bundled":
        data = longtail.load_dataset(longtail.bundled_datasets()[0])
        train = data.train.take(np.arange(N_NEURAL_TEXTS))
        held_out = data.test
    else:
        data = longtail.load_dataset(SHARED / data_name)
        train, held_out = data.train, data.dev if "dev" in data.splits else data.test
    start = time.perf_counter()
    model = longtail.create_method(method.partition(":")[0], NEURAL.get(method, {})).fit(train)
    seconds = time.perf_counter() - start
    top = model.top_k(held_out, 20)
    ids = np.array([*model.vocabulary_.ids, ""])
    return {
        "labels": ids[top.labels],
        "scores": top.scores,
        "fit_s": seconds,
        "predict_s": time.perf_counter() - start - seconds,
    }


def write(out: Path, only: list[str]) -> None:
    """Write the lists of all cases, or of those named in `only`."""
    out.mkdir(parents=True, exist_ok=True)
    for method, data_name in cases():
        if only and not any(f"{method}/{data_name}".startswith(name) for name in only):
            continue
        result = lists_of(method, data_name)
        np.savez_compressed(out / f"{method.replace('/', '-')}@{data_name}.npz", **result)
        print(f"{method} on {data_name}: {result['fit_s']:.1f} s + {result['predict_s']:.1f} s", flush=True)


def compare(before: Path, after: Path) -> int:
    """Print one line per case; return 1 if any differs."""
    different = 0
    for file in sorted(before.glob("*.npz")):
        if not (after / file.name).exists():
            print(f"{file.stem}: missing")
            different += 1
            continue
        old, new = np.load(file), np.load(after / file.name)
        same_labels = np.array_equal(old["labels"], new["labels"])
        same_scores = old["scores"].tobytes() == new["scores"].tobytes()
        if same_labels and same_scores:
            print(f"{file.stem}: equal ({len(old['labels']):,} texts)")
            continue
        different += 1
        if old["labels"].shape != new["labels"].shape:
            print(f"{file.stem}: shapes {old['labels'].shape} and {new['labels'].shape}")
            continue
        texts = int((old["labels"] != new["labels"]).any(axis=1).sum())
        finite = np.isfinite(old["scores"]) & np.isfinite(new["scores"])
        largest = float(np.abs(old["scores"] - new["scores"], where=finite, out=np.zeros_like(old["scores"])).max())
        print(f"{file.stem}: DIFFERENT: lists of {texts:,} texts, scores by up to {largest:.2e}")
    return int(different > 0)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in {"write", "compare"}:
        sys.exit(__doc__)
    if sys.argv[1] == "compare":
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3])))
    write(Path(sys.argv[2]), sys.argv[4:] if len(sys.argv) > 3 else [])
