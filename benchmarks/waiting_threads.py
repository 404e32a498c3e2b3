"""What the training of a stack's trees costs where other processes want the cores too: threads that sleep, or spin.

    python benchmarks/waiting_threads.py [--candidates 50000] [--threads 2] [--repeats 3]

Each training is a process of its own; `sleep` is what `stacking.trees` does, `spin` what OpenMP does by itself (it is
loaded before). Result: results/waiting_threads.json, with the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run

RESULT = Path(__file__).resolve().parent / "results" / "waiting_threads.json"
CANDIDATES_OF_A_TEXT = 50


def train(kind: str, n_candidates: int, threads: int) -> dict[str, float]:
    """Train 50 trees on noisy candidates; return the processor time and the time that passed."""
    if kind == "spin":
        import lightgbm  # noqa: F401
    import numpy as np

    from longtail.run.run import Run
    from longtail.stacking.examples import CandidateExamples
    from longtail.stacking.trees import Trees, TreesOptions

    rng = np.random.default_rng(0)
    features = rng.normal(size=(n_candidates, 20)).astype(np.float32)
    right = features[:, 0] * features[:, 1] + rng.normal(size=n_candidates) > 1
    per_text = np.full(n_candidates // CANDIDATES_OF_A_TEXT, CANDIDATES_OF_A_TEXT)
    options = TreesOptions(n_trees=50, objective="binary")
    cpu, wall = time.process_time(), time.perf_counter()
    Trees.fit(CandidateExamples(features, right, per_text), options, seed=0, run=Run.of(threads=threads))
    return {"cpu_s": round(time.process_time() - cpu, 2), "wall_s": round(time.perf_counter() - wall, 2)}


def main() -> None:
    """Train in both ways by turns, and write what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=["sleep", "spin"], help="train once, in this process")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(train(args.one, args.candidates, args.threads)))
        return
    rows = []
    for _ in range(args.repeats):
        for kind in ("sleep", "spin"):
            load = os.getloadavg()[0]
            command = [sys.executable, __file__, "--one", kind]
            command += ["--candidates", str(args.candidates), "--threads", str(args.threads)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append({"kind": kind, "load": round(load, 1), **json.loads(ended.stdout)})
            print(rows[-1], flush=True)
    result = {"candidates": args.candidates, "threads": args.threads, "rows": rows, "run": describe_run(args.threads)}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
