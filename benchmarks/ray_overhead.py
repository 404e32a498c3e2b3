"""What a local Ray costs beside threads: python benchmarks/ray_overhead.py --data ../shared/data/tibkat-gnd

`linear` is trained by turns with two threads and with two workers of a Ray that was started before. Models are compared
bit for bit. Results: results/ray_overhead.json, in seconds by the clock and of the processors (this process and, for
Ray, its workers).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from machine import describe_run

from longtail.data.load import load_dataset
from longtail.methods import create_method
from longtail.run.local import LocalEngine
from longtail.run.ray import RayEngine
from longtail.run.run import Run

RESULTS = Path(__file__).parent / "results" / "ray_overhead.json"
N_THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of a data set")
    parser.add_argument("--method", default="linear", help="a method or a preset")
    parser.add_argument("--repeats", type=int, default=2, help="trainings with each engine")
    parser.add_argument("--texts", type=int, help="train on so many texts only")
    given = parser.parse_args()
    train = load_dataset(given.data).train
    if given.texts is not None:
        train = train.take(np.linspace(0, len(train) - 1, given.texts).astype(np.int64))
    engines: dict[str, Any] = {"threads": LocalEngine(N_THREADS), "ray": RayEngine(n_jobs=N_THREADS)}
    for engine in engines.values():  # loads kernels here and in the workers
        create_method(given.method).fit(train.take(np.arange(min(2000, len(train)))), run=Run(engine))
    took: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    files: list[dict[str, bytes]] = []
    for _ in range(given.repeats):
        for name, engine in engines.items():
            before, start = cpu_by_process(), time.perf_counter()
            model = create_method(given.method).fit(train, run=Run(engine))
            seconds, cpu_s = time.perf_counter() - start, cpu_since(before)
            took[name].append({"seconds": seconds, "cpu_s": cpu_s})
            files.append(files_of(model))
            print(name, took[name][-1])
    figures = {
        "data": given.data.name,
        "method": given.method,
        "n_texts": len(train),
        "same_bits": all(one == files[0] for one in files),
        **took,
        "ratio_seconds": best(took["ray"], "seconds") / best(took["threads"], "seconds"),
        "ratio_cpu": best(took["ray"], "cpu_s") / best(took["threads"], "cpu_s"),
    }
    RESULTS.write_text(json.dumps({"run": describe_run(N_THREADS), **figures}, indent=1) + "\n")
    print(json.dumps(figures))


def best(rows: list[dict[str, float]], name: str) -> float:
    return min(row[name] for row in rows)


def cpu_by_process() -> dict[int, float]:
    """Return the processor time of this process and of those below it: Ray's are its children."""
    return dict(_times(psutil.Process()))


def cpu_since(before: dict[int, float]) -> float:
    """Return the processor time spent since, processes that ended meanwhile left out."""
    return sum(spent - before.get(number, 0.0) for number, spent in _times(psutil.Process()))


def _times(process: psutil.Process) -> Iterator[tuple[int, float]]:
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        yield one.pid, times.user + times.system


def files_of(model: Any) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m")
        return {path.name: path.read_bytes() for path in sorted(Path(folder).rglob("*.safetensors"))}


if __name__ == "__main__":
    main()
