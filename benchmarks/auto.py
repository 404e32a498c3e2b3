"""Method auto within a time, beside linear: accuracy, calibration, time and what it chose.

    python benchmarks/auto.py eurlex57k [--budget 10m] [--threads 2]     results/auto/<data>.json

Measured on dev, or on test where there is no dev. Times are of the clock: run it on an idle machine. Where the whole
vocabulary is not known, labels without training texts are left out, as in benchmarks/real_data.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import longtail
from longtail.labels.model_labels import with_seen_labels
from longtail.metrics import BootstrapOptions, MetricOptions

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
RESULTS = ROOT / "benchmarks" / "results" / "auto"
METRICS = ("P@1", "P@5", "RP@5", "nDCG@5", "F1@5", "PSP@5", "micro-F1", "ECE@1", "ECE@5")


def measure(data_name: str, budget: str, threads: int, shared: Path) -> dict[str, Any]:
    """Train auto on a data set and measure it."""
    data = longtail.load_dataset(shared / "data" / data_name)
    texts = data.dev if "dev" in data.splits else data.test
    train = data.train if data.official is not None else with_seen_labels(data.train)
    start, cpu_start = time.perf_counter(), time.process_time()
    trained = longtail.Auto(budget=budget).fit(train, threads=threads)
    train_s, train_cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    print(trained.why(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trained.save(Path(folder) / "model")
        size_mb = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6
        model = longtail.load_model(Path(folder) / "model")
        threshold = model.chain_.lowest_score("auto")
        metrics = MetricOptions(at=(1, 5), threshold=threshold)
        evaluation = longtail.evaluate_model(
            model, texts, metrics, bootstrap=BootstrapOptions(), seen=data.train, threads=threads
        )
        start, cpu_start = time.perf_counter(), time.process_time()
        model.top_k(texts, 5, threads=threads)
        batch_s, batch_cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
        single = []
        for text in range(min(200, len(texts))):
            start = time.perf_counter()
            model.top_k(texts[text : text + 1], 5, threads=1)
            single.append(time.perf_counter() - start)
    intervals = evaluation.plain()["intervals"]["metrics"]
    return {
        "data": data_name,
        "n_train": len(train),
        "n_texts": len(texts),
        "budget": budget,
        "train_s": train_s,
        "train_cpu_s": train_cpu_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "size_mb": size_mb,
        "batch_ms": 1000 * batch_s / len(texts),
        "batch_cpu_ms": 1000 * batch_cpu_s / len(texts),
        "single_ms": 1000 * sorted(single)[len(single) // 2],
        "threshold": threshold,
        "metrics": {name: evaluation.metrics.values[name] for name in METRICS},
        "intervals": {name: intervals[name] for name in METRICS},
        "without_seen_texts": {name: evaluation.new.values[name] for name in METRICS} if evaluation.new else None,
        "why": trained.why().splitlines(),
    }


def main() -> None:
    """Measure one data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the data sets")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    args = parser.parse_args()
    command = f"python benchmarks/auto.py {args.data} --budget {args.budget} --threads {args.threads}"
    row = measure(args.data, args.budget, args.threads, args.shared)
    row |= {"command": command, "run": describe_run(args.threads)}
    args.results.mkdir(parents=True, exist_ok=True)
    (args.results / f"{args.data}.json").write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    print({name: round(value, 4) for name, value in row["metrics"].items()}, f"{row['train_s']:.0f} s")


if __name__ == "__main__":
    main()
