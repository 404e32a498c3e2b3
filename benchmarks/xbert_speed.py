"""How fast `xbert` predicts with one saved model, in this checkout and in another: texts are read once, not twice.

    python benchmarks/xbert_speed.py train MODEL [--encoder ../shared/models/e5-small]    a small model, in two minutes
    python benchmarks/xbert_speed.py time MODEL --repeats 3                               processor time, as JSON
    python benchmarks/xbert_speed.py compare MODEL --other ../other/src --json FILE       both in turn, in processes

Seconds are processor time of one thread, best of all repeats, so that other work on the machine counts little. To
compare with another commit, train with its code (`PYTHONPATH`): models of earlier formats open in later versions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail

SHARED = Path(__file__).resolve().parents[2] / "shared"
N_TRAIN, N_PREDICT, N_TOKENS = 400, 100, 64


def train(model: Path, encoder: str, data: Path) -> None:
    """Train a model on some texts and save it."""
    split = longtail.load_dataset(data).train.take(np.arange(N_TRAIN))
    recall = {"kind": "transformer", "model": encoder, "tokens": {"max_tokens": N_TOKENS}}
    options = {"recalls": [recall], "matcher": {"training": {"n_steps": 5}}}
    longtail.create_method("xbert", options).fit(split).save(model)


def timed(model: Path, data: Path, repeats: int) -> dict[str, Any]:
    """Return the processor time of prediction, training on as many texts, and how often texts were encoded."""
    import torch

    from longtail.nn.encoders.base import Encoder

    torch.set_num_threads(1)
    texts = longtail.load_dataset(data).dev.take(np.arange(N_PREDICT))
    opened, rows = longtail.load_model(model), [0]

    def count(module: Any, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, Encoder):
            rows[0] += len(inputs[0])

    opened.top_k(texts.take(np.arange(16)), 20, threads=1)
    hook = torch.nn.modules.module.register_module_forward_pre_hook(count)
    seconds = []
    for _ in range(repeats):
        rows[0], start = 0, time.process_time()
        lists = opened.top_k(texts, 20, threads=1)
        seconds.append(time.process_time() - start)
    hook.remove()
    return {
        "commit": _commit(),
        "predict_cpu_s": min(seconds),
        "n_texts": N_PREDICT,
        "rows_encoded": rows[0],
        "first_labels": [opened.vocabulary_.ids[label] for label in lists.labels[:, 0]],
    }


def _commit() -> str:
    where = ["git", "-C", str(Path(longtail.__file__).parent), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()


def compare(model: Path, data: Path, other: Path, repeats: int) -> dict[str, Any]:
    """Return the figures of both checkouts, measured in turn, and their ratio."""
    here = Path(longtail.__file__).parents[1]
    runs: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
    for _ in range(2):
        for name, source in (("before", other), ("after", here)):
            command = [sys.executable, __file__, "time", str(model), "--data", str(data), "--repeats", str(repeats)]
            environment = {**os.environ, "PYTHONPATH": str(source)}
            ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            runs[name].append(json.loads(ended.stdout))
    best = {name: min(some, key=lambda run: float(run["predict_cpu_s"])) for name, some in runs.items()}
    same = [one == two for one, two in zip(*(run.pop("first_labels") for run in best.values()), strict=True)]
    ratio = best["before"]["predict_cpu_s"] / best["after"]["predict_cpu_s"]
    return {**best, "times_faster": round(ratio, 3), "first_labels_equal": sum(same) / len(same)}


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["train", "time", "compare"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "eurlex57k")
    parser.add_argument("--encoder", default=str(SHARED / "models" / "e5-small"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--other", type=Path, help="`src` of the other checkout")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.command == "train":
        train(given.model, given.encoder, given.data)
        return
    if given.command == "time":
        print(json.dumps(timed(given.model, given.data, given.repeats)))
        return
    outcome = compare(given.model, given.data, given.other, given.repeats)
    print(json.dumps(outcome, indent=1))
    if given.json:
        given.json.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
