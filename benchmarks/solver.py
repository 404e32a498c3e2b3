"""What a non-zero costs the solver as problems outgrow the caches: python benchmarks/solver.py

Random texts of work/synthetic/amazon-3m-0.03 (benchmarks/synthetic.py) with sixteen random labels; one thread, seven
passes, the best of nine. The last figure tells whether two versions give the same weights, bit for bit.

Results: results/solver.json.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from machine import describe_run

from longtail.data import load_dataset
from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.solver import solve_squared_hinge
from longtail.kernels.rows import Rows, gather

HERE = Path(__file__).resolve().parent
SIZES = (500, 2000, 8000, 51_537)
N_PASSES, N_TRIALS = 7, 9


def main() -> None:
    """Measure all sizes."""
    rows = Rows.of(load_dataset(HERE / "work" / "synthetic" / "amazon-3m-0.03").train.features)
    results = {"run": describe_run(1), "sizes": [_measured(rows, n) for n in SIZES]}
    (HERE / "results" / "solver.json").write_text(json.dumps(results, indent=1) + "\n")
    print(results["sizes"])


def _measured(rows: Rows, n_texts: int) -> dict[str, float | str]:
    rng = np.random.default_rng(0)
    local = gather(rows, np.sort(rng.choice(len(rows), n_texts, replace=False)))
    matrix = sp.csr_matrix((local.values, local.indices, local.indptr), (n_texts, len(local.features)))
    margins = matrix @ rng.standard_normal((len(local.features), LANES)).astype(np.float32)
    targets = np.where(margins > np.quantile(margins, 0.97, axis=0), 1, -1).astype(np.int8)
    ones, seconds = np.ones(LANES, np.float32), []
    for _ in range(N_TRIALS):
        weights = np.zeros((len(local.features) + 1, LANES), np.float32)
        start = time.process_time()
        n_passes = solve_squared_hinge(
            local.indptr, local.indices, local.values, targets, np.ones(n_texts, np.float32), ones, ones,
            np.float32(1), np.float32(0.1), N_PASSES, np.uint64(5), weights,
        )  # fmt: skip
        seconds.append(time.process_time() - start)
    return {
        "n_texts": n_texts,
        "n_features": len(local.features),
        "ns_per_non_zero_and_pass": round(min(seconds) / n_passes / len(local.indices) * 1e9, 2),
        "weights": hashlib.sha256(weights.tobytes()).hexdigest()[:16],
    }


if __name__ == "__main__":
    main()
