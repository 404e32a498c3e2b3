"""linear/fast on growing shares of Amazon-3M's shape, PECOS beside it: python benchmarks/shapes.py [--shares 0.01,0.03]

Each share is drawn by synthetic.py. longtail is trained in a process of its own, with stages on disk; with `--kill` it
is killed once when label weights are being trained, and resumed: what the killed process had used stands in `killed`.
PECOS XR-Linear is measured as in linear.py, under a cap on memory. The last row of the results is extrapolated to the
whole shape by least squares of logarithms over the shares, and says so.

Results: results/shapes.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_run
from memory import peak_mb, resident_mb
from synthetic import SHAPES, write

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
FILE = HERE / "results" / "shapes.json"
K = 20
N_SINGLE = 200
GROWING = ("all_cpu_s", "peak_mb", "model_mb", "plan_mb")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="amazon-3m")
    parser.add_argument("--shares", default="0.01,0.03,0.1", help="by commas")
    parser.add_argument("--methods", default="linear/fast", help="presets by commas; empty for none")
    parser.add_argument("--options", type=json.loads, default={}, help="of the methods, as JSON; named in the results")
    parser.add_argument("--peers", default="pecos", help="by commas; empty for none")
    parser.add_argument("--kill", action="store_true", help="kill each training once, and resume it")
    parser.add_argument("--memory-limit", type=float, default=20.0, metavar="GB")
    parser.add_argument("--time-limit", type=float, default=3600.0, metavar="S")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _train(**json.loads(options.one))
        return
    results = json.loads(FILE.read_text()) if FILE.is_file() else {}
    rows = results.setdefault(options.shape, {})
    for share in map(float, filter(None, options.shares.split(","))):
        data = WORK / "synthetic" / f"{options.shape}-{share:g}"
        counts = write(SHAPES[options.shape].of_share(share), data)
        for method in filter(None, options.methods.split(",")):
            row = {**counts, **_longtail(data, method, options), "run": describe_run(options.threads)}
            name = f"{method} {json.dumps(options.options)}" if options.options else method
            rows.setdefault(name, {})[f"{share:g}"] = row
            print(method, share, row, flush=True)
        for peer in filter(None, options.peers.split(",")):
            row = {**counts, **_peer(data, peer, options), "run": describe_run(options.threads)}
            rows.setdefault(peer, {})[f"{share:g}"] = row
            print(peer, share, row, flush=True)
        FILE.write_text(json.dumps(results, indent=1) + "\n")
    for measured in rows.values():
        measured["extrapolated to 1"] = _whole(measured, SHAPES[options.shape].n_texts)
    FILE.write_text(json.dumps(results, indent=1) + "\n")


def _longtail(data: Path, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train once, or twice where the first training is killed; return what was measured."""
    work = WORK / "runs" / "shapes"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    task = {"data": str(data), "method": method, "threads": options.threads, "work": str(work)}
    task["options"] = options.options
    killed = _killed(task, work) if options.kill else None
    subprocess.run(_command({**task, "resume": options.kill}), check=True)
    result = json.loads((work / "result.json").read_text())
    shutil.rmtree(work)
    all_cpu_s = result["train_cpu_s"] + (killed["cpu_s"] if killed else 0)  # the killed process read the data, too
    return {**result, "killed": killed, "all_cpu_s": round(all_cpu_s, 1)}


def _command(task: dict[str, Any]) -> list[str]:
    return [sys.executable, __file__, "--one", json.dumps(task)]


def _killed(task: dict[str, Any], work: Path) -> dict[str, float] | None:
    """Train until clusters have weights, kill the process, and return what it had used; None if it was too fast."""
    process = subprocess.Popen(_command({**task, "resume": False}))
    while process.poll() is None and not list((work / "stages").glob("*cluster-weights-2*")):
        time.sleep(0.05)
    if process.poll() is not None:
        return None
    os.kill(process.pid, signal.SIGKILL)
    used = os.wait4(process.pid, 0)[2]
    process.returncode = -signal.SIGKILL
    return {"cpu_s": round(used.ru_utime + used.ru_stime, 1), "peak_mb": round(used.ru_maxrss / 1e3)}


def _train(
    data: str, method: str, threads: int, work: str, resume: bool, options: dict[str, Any] | None = None
) -> None:
    from longtail.data import load_dataset
    from longtail.methods import create_method, load_model
    from longtail.metrics import MetricOptions, evaluate
    from longtail.run.local import LocalEngine
    from longtail.run.run import Run

    dataset = load_dataset(data)
    train, test = dataset.train, dataset.test
    steps = _Steps()
    plan = create_method(method, options).estimate_resources(train)
    found: dict[str, Any] = {
        "plan_mb": round(plan.memory_bytes / 1e6),
        "plan_parts_mb": {name: round(size / 1e6) for name, size in plan.parts},
        "loaded_mb": round(resident_mb()),
    }
    start, start_cpu = time.perf_counter(), time.process_time()
    stages = Path(work) / "stages"
    model = create_method(method, options).fit(train, run=Run(LocalEngine(threads), steps), work=stages, resume=resume)
    found |= {
        "train_s": round(time.perf_counter() - start, 1),
        "train_cpu_s": round(time.process_time() - start_cpu, 1),
        "steps_cpu_s": {name: round(seconds, 1) for name, seconds in steps.seconds.items()},
        "peak_mb": round(peak_mb()),
    }
    model.save(Path(work) / "model")
    files = (Path(work) / "model").rglob("*")
    found["model_mb"] = round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)
    del model
    model = load_model(Path(work) / "model")
    lists, found["batch_cpu_ms"] = _timed(lambda: model.top_k(test, K), len(test))
    ids = dataset.vocabulary.position
    moved = np.array([ids[label] for label in model.vocabulary_.ids], np.int32)
    lists = type(lists)(np.where(lists.labels >= 0, moved[lists.labels], -1).astype(np.int32), lists.scores)
    measured = evaluate(lists, test.labels, train.labels.texts_per_label(), len(train), MetricOptions(at=(1, 5)))
    found |= {name: round(100 * measured.values[name], 2) for name in ("P@1", "P@5", "nDCG@5")}
    most_frequent = int(train.labels.texts_per_label().argmax())
    found["P@1 of the most frequent label"] = round(
        100 * float((test.labels.indices == most_frequent).sum()) / len(test), 2
    )
    some = [test.take(np.array([row])) for row in range(min(N_SINGLE, len(test)))]
    found["single_cpu_ms"] = round(statistics.median(_timed(lambda: model.top_k(one, 5), 1)[1] for one in some), 3)  # noqa: B023
    (Path(work) / "result.json").write_text(json.dumps(found))


def _timed(work: Any, n_texts: int) -> tuple[Any, float]:
    """Return what `work` returns, and its milliseconds of processor time per text."""
    start = time.process_time()
    result = work()
    return result, round((time.process_time() - start) / n_texts * 1e3, 4)


class _Steps:
    """Processor time of each step of a training."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
        start = time.process_time()
        yield lambda amount, note="": None
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def _peer(data: Path, peer: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a peer as linear.py does, on links to the same files."""
    from environments import python_of
    from linear import _measure  # imports much that a training must not be charged for

    features, work = WORK / "features" / data.name, WORK / "runs" / "shapes-peer"
    shutil.rmtree(features, ignore_errors=True)
    features.mkdir(parents=True)
    for name, file in {"X_train": "X.trn", "Y_train": "Y.trn", "X_eval": "X.tst", "Y_eval": "Y.tst"}.items():
        os.link(data / f"{file}.npz", features / f"{name}.npz")
    n_test = np.load(features / "Y_eval.npz")["shape"][0]
    np.save(features / "repeated.npy", np.zeros(n_test, bool))
    rows = list(range(min(N_SINGLE, int(n_test))))
    (features / "sample.json").write_text(json.dumps({"rows": rows, "texts": [str(row) for row in rows]}))
    task = {"data": str(data), "split": "test", "features": str(features), "work": str(work), "settings": {}}
    return _measure(python_of(peer, WORK / "envs"), peer, {**task, "n_threads": options.threads}, options)


def _whole(measured: dict[str, Any], n_texts: int) -> dict[str, Any]:
    """Return what the whole shape would take, by a power of the number of texts."""
    rows = [row for share, row in measured.items() if not share.startswith("extrapolated")]
    rows = [{**row, **(of_peer := row.get("measured", {})), **_cpu_of(of_peer)} for row in rows]
    found = {}
    for name in GROWING:
        known = [(row["n_texts"], row[name]) for row in rows if row.get(name)]
        if len(known) > 1:
            texts, values = np.log(np.array(known)).T
            power, first = np.polyfit(texts, values, 1)
            found[name] = {"value": round(float(np.exp(first + power * np.log(n_texts)))), "power": round(power, 2)}
    return found


def _cpu_of(of_peer: dict[str, float]) -> dict[str, float]:
    return {"all_cpu_s": of_peer["train_cpu_s"]} if "train_cpu_s" in of_peer else {}


if __name__ == "__main__":
    main()
