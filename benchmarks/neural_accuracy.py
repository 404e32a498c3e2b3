"""How right the neural methods are on real data, one model each, with the time that training took.

    python benchmarks/neural_accuracy.py --data FOLDER --encoder FOLDER --out FOLDER [--only NAME ...] [--set A=B ...]
                                         [--seeds 0 1 2] [--vectors FILE] [--against NAME ...]

Trains on train and measures on dev. Options were chosen on the same dev (eurlex57k's test is left out of the shared
data). Results are JSON and a table; labels that train lacks count as misses. With `--against`, each row is also set
beside another row of the same seed: its gain with a 95 % interval, by a bootstrap over the texts of both.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from once import once

from longtail.data import load_dataset
from longtail.data.dataset import Split
from longtail.evaluation import Evaluation, evaluate_model
from longtail.methods import create_method
from longtail.metrics import intervals
from longtail.settings import with_settings

SHOWN = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "PSP@5")

LISTS = ("labels", "scores")
"""What is kept of each row's predictions, in a file of arrays beside the results."""

TRAINING = {"epochs": 8.0, "batch_size": 64, "rate": 1.5e-4, "head_rate": 4e-3, "bottleneck_rate": 2e-3}


def variants(encoder: str, vectors: str | None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Method and options of each row; `vectors` is a file of word vectors."""
    whole = {"model": encoder, "kind": "transformer", "tokens": {"max_tokens": 512}, "n_layers": 5}
    five = {**whole, "attention_dropout": 0.0}
    short = {**five, "n_layers": 1, "tokens": {"max_tokens": 256}}
    glove = {"source": vectors, "spread": 0.5} if vectors else {}
    return {
        "lightxml": ("lightxml", {"encoders": [whole]}),
        "aplc-xlnet": ("aplc-xlnet", {"encoder": five, "training": TRAINING}),
        "xbert": ("xbert", {"recalls": [short], "matcher": {"training": {**TRAINING, "epochs": 3.0}}}),
        "xr-transformer": ("xr-transformer", {"encoders": [short], "fine_tuning": {"training": levels(1.0, 1.0, 1.0)}}),
        "xr-transformer-long": (
            "xr-transformer",
            {"encoders": [short], "fine_tuning": {"training": levels(2.0, 2.0, 4.0)}},
        ),
        "linear": ("linear", {}),
        "knn": ("knn", {}),
        "attentionxml": ("attentionxml", {"encoder": {"vectors": glove}}),
        "treaderxml": ("treaderxml", {"training": EARLY}),
        "treaderxml-transformer": ("treaderxml/transformer", {"encoder": whole}),
        "treaderxml-transformer-text": ("treaderxml/transformer", {"encoder": whole, "teacher": False}),
        "treaderxml-names": ("treaderxml", {"scope": {"votes": 0.0}, "training": EARLY}),
        "treaderxml-text": ("treaderxml", {"teacher": False, "training": EARLY}),
    }


def levels(*epochs: float) -> list[dict[str, Any]]:
    """Return how each level is trained; three epochs in all are what xbert's matcher has."""
    return [{**TRAINING, "epochs": number} for number in epochs]


EARLY = {"validation": 0.02, "patience": 6}
"""Early stopping on texts held out of train, for rows that are compared with each other."""


class Clock:
    """Progress that notes how long each step took and says so."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def step(self, name: str, total: int | None = None, unit: str = "") -> Any:
        from contextlib import contextmanager

        @contextmanager
        def timed() -> Any:
            start, done, said = time.perf_counter(), 0, 0.0

            def advance(amount: int, note: str = "") -> None:
                nonlocal done, said
                done += amount
                now = time.perf_counter() - start
                if note and now - said > 20:
                    said = now
                    print(f"    {name} {done:,}/{total or 0:,} {now:.0f} s {done / now:,.0f}/s {note}", flush=True)

            yield advance
            took = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            if took > 2:
                print(f"  {name}: {took:.1f} s, {done / took:,.0f}/s", flush=True)

        return timed()


def measure(
    method: str, options: dict[str, Any], settings: list[str], data: Any, train: Split, plan: bool
) -> tuple[dict[str, Any], Evaluation]:
    """One row: train, predict, judge."""
    model = create_method(method, with_settings(create_method(method, options).options, settings))
    needs = model.estimate_resources(train, measure=True) if plan else None
    clock = Clock()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    model.fit(train, progress=clock)
    train_s = time.perf_counter() - start
    start = time.perf_counter()
    found = evaluate_model(model, data.dev)
    evaluate_s = time.perf_counter() - start
    row = {
        **shown(found),
        "train_s": round(train_s, 1),
        "loop_s": round(clock.seconds.get("train", 0.0), 1),
        "evaluate_s": round(evaluate_s, 1),
        "steps_s": {name: round(value, 1) for name, value in clock.seconds.items()},
        "peak_gpu_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None,
        "options": model.options.plain(),
    }
    if needs is not None:
        row["planned"] = {"s": round(needs.seconds or 0, 1), "gpu_gib": round(needs.gpu_bytes / 2**30, 2)}
    if torch.cuda.is_available() and "bf16" in model.precisions:  # there networks predict in bf16
        row["fp32"] = shown(evaluate_model(model, data.dev, precision="fp32"))
    return row, found


def shown(found: Evaluation) -> dict[str, float]:
    """The metrics of the table, in points."""
    return {name: round(100 * value, 2) for name, value in found.metrics.values.items() if name in SHOWN}


def gain(one: Evaluation, two: Evaluation) -> dict[str, list[float]]:
    """Points by which one is above two, with the interval's ends."""
    found = intervals(one.predicted, one.truth, one.train_counts, one.n_train_texts, minus=two.predicted).values
    return {
        name: [round(100 * value, 2) for value in (found[name].value, found[name].low, found[name].high)]
        for name in ("P@1", "P@5", "nDCG@5")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=["lightxml", "aplc-xlnet", "xbert"])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", help="[NAME:]option=value")
    parser.add_argument("--vectors", help="a file of word vectors, for the rows that read words")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="each row with each of these")
    parser.add_argument("--against", nargs="*", default=[], help="rows that rows after them are set beside")
    parser.add_argument("--plan", action="store_true", help="also what `longtail plan` would have told")
    parser.add_argument("--name", default="neural_accuracy", help="of the file of results")
    parser.add_argument("--texts", type=int, help="train on the first so many texts, for trying the script out")
    given = parser.parse_args()
    data = load_dataset(given.data)
    train = data.train.take(np.arange(given.texts)) if given.texts else data.train
    found: dict[str, Any] = {}
    judged: dict[str, Evaluation] = {}
    given.out.mkdir(parents=True, exist_ok=True)
    once()
    for row in [f"{row}~{seed}" if seed else row for seed in given.seeds for row in given.only]:
        name, _, seed = row.partition("~")
        own = [s.partition(":")[2] if s.split("=")[0].count(":") else s for s in given.settings if _meant(s, name)]
        method, options = variants(given.encoder, given.vectors)[name]
        print(row, own, flush=True)
        found[row], judged[row] = measure(method, {**options, "seed": int(seed or 0)}, own, data, train, given.plan)
        beside = {other: f"{other}~{seed}" if seed else other for other in given.against if other != name}
        found[row]["gain"] = {other: gain(judged[row], judged[key]) for other, key in beside.items() if key in judged}
        facts = {
            "data": Path(given.data).name,
            "split": "dev",
            "encoder": Path(given.encoder).name,
            "n_train": len(train),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "torch": torch.__version__,
            "results": found,
        }
        told = json.dumps(facts, indent=1).replace(given.encoder, Path(given.encoder).name)
        (given.out / f"{given.name}.json").write_text(told)  # results do not say where the encoder lay
        lists = {f"{name} {part}": getattr(e.predicted, part) for name, e in judged.items() for part in LISTS}
        np.savez_compressed(given.out / f"{given.name}.npz", **lists)
        cells = {key: found[row][key] for key in (*SHOWN, "train_s", "loop_s", "evaluate_s")}
        print(f"{row:20}", "  ".join(f"{k} {v}" for k, v in cells.items()), found[row]["gain"], flush=True)


def _meant(setting: str, name: str) -> bool:
    """Whether a setting is for this row: `NAME:option=value`, or for all."""
    path = setting.split("=")[0]
    return ":" not in path or path.split(":")[0] == name


if __name__ == "__main__":
    main()
