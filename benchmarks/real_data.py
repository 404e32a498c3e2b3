"""Methods beside each other on real data, each from nothing in a process of its own: accuracy, calibration, cost.

    python benchmarks/real_data.py [--data NAMES] [--methods NAMES] [--threads N]   trains and measures, then the table
    python benchmarks/real_data.py --table-only                                     docs/real-data.md from the results

Results: results/real_data/<data>/<method>.json. Measured on dev of eurlex57k and tibkat-gnd, whose test splits are not
at hand, and on test of the others; options were chosen on dev and on held-out training texts. Options that depend on
the data are those of real_rows.py; NAME~1 is the row NAME with seed 1. A method that needs a GPU is skipped without
one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import longtail
from longtail.evaluation import Evaluation
from longtail.labels.model_labels import with_seen_labels
from longtail.metrics import BootstrapOptions, MetricOptions, intervals
from longtail.scores.calibrate import Calibrate, are_right, best_f1_threshold
from longtail.types import NO_LABEL, LabelMatrix, TopK

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run
from real_rows import WITH_NETWORKS, method_and_options

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
RESULTS = ROOT / "benchmarks" / "results" / "real_data"
PAGE = ROOT / "docs" / "real-data.md"
DATA = ("eurlex57k", "tibkat-gnd", "yso-finna-en", "debtags", "cooking-stackexchange")
METHODS = ("linear", "knn", "lexical", "stack", "stack/cpu")
APART = ("stack-of-lists", "stack-of-lists-network")
"""Rows of stack_of_lists.py: members that were trained apart."""
METRICS = ("P@1", "P@5", "RP@5", "nDCG@5", "F1@5", "PSP@5")
COSTS = {"ece_5": 3, "train_cpu_s": 0, "batch_cpu_ms": 2, "single_cpu_ms": 2, "size_mb": 0, "peak_mb": 0}
"""Further figures of a row, with digits; a stack whose members were trained apart has no costs."""
SINGLE_TEXTS = 100
K = 20
LIST_LENGTH = 40
"""Labels in the kept lists of a stack's members, as many as its ranker reads."""
BEGIN, END = "<!-- measured: made by benchmarks/real_data.py -->", "<!-- end of measured -->"


def measure(data_name: str, row: str, threads: int, work: Path | None, shared: Path) -> dict[str, Any]:
    """Train the method of one row on one data set, and measure it; `work` is where stages of its training are kept."""
    data = longtail.load_dataset(shared / "data" / data_name)
    held_out = data.dev if "dev" in data.splits else data.test
    method, options = method_and_options(row, data_name, shared / "models")
    model = longtail.create_method(method, options)
    stages = None if work is None else work / data_name / row.replace("/", "-")
    resumed = stages is not None and stages.exists()
    start, wall_start = time.process_time(), time.perf_counter()
    # Where the whole vocabulary is not known, the list of labels is that of all splits: those without training texts
    # would all be answers, so nobody is told of them.
    train = data.train if data.official is not None else with_seen_labels(data.train)
    model.fit(train, threads=threads, work=stages, resume=resumed)
    train_cpu_s = None if resumed else time.process_time() - start
    train_s = None if resumed else time.perf_counter() - wall_start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size_mb = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6
        model = longtail.load_model(Path(folder) / "model")
        model.top_k(held_out[:50], 5, threads=threads)
        start = time.process_time()
        model.top_k(held_out, K, threads=threads)
        batch_cpu_s = time.process_time() - start
        evaluation = longtail.evaluate_model(
            model,
            held_out,
            MetricOptions(at=(1, 5, K)),
            bootstrap=BootstrapOptions(),
            seen=data.train,
            threads=threads,
        )
        members = of_members(model, held_out, threads, stages)
        single = []
        for text in range(min(SINGLE_TEXTS, len(held_out))):
            one = held_out[text : text + 1]
            begun = time.process_time()
            model.top_k(one, 5, threads=1)
            single.append(time.process_time() - begun)
    plain = evaluation.plain()
    return {
        "data": data_name,
        "method": row,
        "options": _without_folders(options, shared),
        "n_train": len(data.train),
        "n_texts": len(held_out),
        "metrics": {name: evaluation.metrics.values[name] for name in METRICS},
        "intervals": {name: plain["intervals"]["metrics"][name] for name in METRICS},
        "new": {name: evaluation.new.values[name] for name in METRICS} if evaluation.new else None,
        "languages": by_language(evaluation),
        "members": members,
        **threshold_figures(model.chain_.steps, evaluation.predicted, evaluation.truth),
        "train_s": train_s,
        "train_cpu_s": train_cpu_s,
        "peak_mb": peak_mb,
        "size_mb": size_mb,
        "batch_cpu_ms": 1000 * batch_cpu_s / len(held_out),
        "single_cpu_ms": 1000 * float(np.median(single)),
    }


def of_members(model: Any, held_out: Any, threads: int, kept: Path | None) -> list[dict[str, Any]]:
    """Return metrics and costs of each method that a stack consists of, alone; keep their lists in a folder."""
    from longtail.methods.members import MethodOfMethods

    figures = []
    for number, member in enumerate(model.members_ if isinstance(model, MethodOfMethods) else ()):
        start = time.process_time()
        evaluation = longtail.evaluate_model(member, held_out, MetricOptions(at=(1, 5, LIST_LENGTH)), threads=threads)
        cost = 1000 * (time.process_time() - start) / len(held_out)
        metrics = {name: evaluation.metrics.values[name] for name in METRICS}
        figures.append({"method": model.options.members[number].method, "metrics": metrics, "batch_cpu_ms": cost})
        if kept is not None:
            predicted = evaluation.predicted
            lists = {"labels": predicted.labels.astype(np.int32), "scores": predicted.scores.astype(np.float16)}
            np.savez_compressed(kept.parent / f"{kept.name}-member-{number}.npz", **lists)
    return figures


def _without_folders(options: dict[str, Any], shared: Path) -> dict[str, Any]:
    """Return options whose encoders are called by their names, wherever they lay."""
    plain: dict[str, Any] = json.loads(json.dumps(options).replace(f"{shared / 'models'}/", ""))
    return plain


def by_language(evaluation: Evaluation) -> dict[str, Any]:
    """Return number of texts, metrics and intervals of the texts of each language, where texts have one."""
    split, predicted, truth = evaluation.split, evaluation.predicted, evaluation.truth
    if "lang" not in split.texts.column_names:
        return {}
    of_texts = np.array(split.texts["lang"].to_pylist())
    results = {}
    for language in np.unique(of_texts).tolist():
        rows = np.flatnonzero(of_texts == language)
        lists = TopK(predicted.labels[rows], predicted.scores[rows])
        counts, n_train = evaluation.train_counts, evaluation.n_train_texts
        drawn = intervals(lists, truth.take(rows), counts, n_train, evaluation.options, BootstrapOptions())
        of_metrics = drawn.plain()["metrics"]
        results[language] = {"n_texts": len(rows)} | {name: of_metrics[name] for name in METRICS}
    return results


def threshold_figures(steps: Any, predicted: TopK, truth: LabelMatrix) -> dict[str, float | None]:
    """Return micro-F1 at the model's own threshold and at the best one of these texts, and ECE@5."""
    filled, right = predicted.labels != NO_LABEL, are_right(predicted, truth)

    def micro_f1(threshold: float) -> float:
        kept = predicted.scores >= threshold
        return float(2 * np.count_nonzero(right & kept) / (np.count_nonzero(kept) + len(truth.indices)))

    best = best_f1_threshold(predicted.scores[filled].astype(np.float64), right[filled], len(truth.indices))
    own = [step.f1_threshold for step in steps if isinstance(step, Calibrate)]
    scores, hits = predicted.scores[:, :5][filled[:, :5]], right[:, :5][filled[:, :5]]
    places = np.minimum((scores * 15).astype(int), 14)
    bins = [places == place for place in np.unique(places)]
    ece = sum(abs(scores[one].mean() - hits[one].mean()) * one.mean() for one in bins)
    return {
        "micro_f1": micro_f1(own[-1]) if own else None,
        "best_micro_f1": micro_f1(best),
        "ece_5": float(ece),
    }


def page() -> str:
    """Return docs/real-data.md with the tables of all results."""
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:start] + "\n" + "\n".join(map(_table, DATA)) + text[end:]


def _table(data_name: str) -> str:
    files = {json.loads(file.read_text())["method"]: file for file in (RESULTS / data_name).glob("*.json")}
    rows = [json.loads(files[method].read_text()) for method in (*METHODS, *WITH_NETWORKS, *APART) if method in files]
    if not rows:
        return ""
    head = ("", *METRICS, "micro-F1", "ECE@5", "train CPU s", "batch CPU ms", "single CPU ms", "MB", "peak MB")
    where = "dev" if data_name in ("eurlex57k", "tibkat-gnd") else "test"
    lines = [f"\n## {data_name}\n", f"{rows[0]['n_train']:,} training texts, {rows[0]['n_texts']:,} of {where}.\n"]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        accuracy = [_with_interval(100 * row["metrics"][name], row["intervals"][name]) for name in METRICS]
        own, best = row["micro_f1"], row["best_micro_f1"]
        f1 = f"({100 * best:.1f})" if own is None else f"{100 * own:.1f} ({100 * best:.1f})"
        costs = (_number(row.get(name), digits) for name, digits in COSTS.items())
        lines.append(f"| {' | '.join((row['method'], *accuracy, f1, *costs))} |")
    new = [f"{r['method']} {100 * r['new']['P@1']:.1f} / {100 * r['new']['nDCG@5']:.1f}" for r in rows if r["new"]]
    lines += ["", f"P@1 / nDCG@5 without texts that occur word for word in train: {', '.join(new)}.", ""]
    for language in rows[0]["languages"]:
        of_methods = [f"{row['method']} {_in_language(row['languages'][language])}" for row in rows]
        n_texts = rows[0]["languages"][language]["n_texts"]
        lines += [
            f"P@1 / nDCG@5 / F1@5 of the {n_texts:,} texts of language `{language}`: {', '.join(of_methods)}.",
            "",
        ]
    return "\n".join(lines)


def _in_language(figures: dict[str, Any]) -> str:
    return " / ".join(_with_interval(100 * figures[name]["value"], figures[name]) for name in ("P@1", "nDCG@5", "F1@5"))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _with_interval(value: float, interval: dict[str, float]) -> str:
    low, high = 100 * interval["low"], 100 * interval["high"]
    return f"{value:.1f} ± {(high - low) / 2:.1f}"


def main() -> None:
    """Measure every method on every data set, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--work", type=Path, help="keep stages of trainings here: a killed one goes on, without its costs"
    )
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the data sets and encoders")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--table-only", action="store_true")
    parser.add_argument("--row", nargs=2, metavar=("DATA", "METHOD"), help="measure one row in this process")
    args = parser.parse_args()
    if args.row:
        print(json.dumps(measure(*args.row, args.threads, args.work, args.shared)))
        return
    failed: list[str] = []
    if not args.table_only:
        run = describe_run(args.threads)
        for data_name in args.data.split(","):
            for method in args.methods.split(","):
                if method.partition("~")[0] in WITH_NETWORKS and not _has_gpu():
                    print(f"{data_name} {method}: skipped, no GPU", flush=True)
                    continue
                command = [sys.executable, __file__, "--row", data_name, method, "--threads", str(args.threads)]
                command += ["--shared", str(args.shared)]
                command += [] if args.work is None else ["--work", str(args.work)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
                if done.returncode:
                    failed.append(f"{data_name} {method}")
                    print(f"{data_name} {method}: failed with code {done.returncode}", flush=True)
                    continue
                row = json.loads(done.stdout.splitlines()[-1]) | {"run": run}
                file = args.results / data_name / f"{method.replace('/', '-')}.json"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
                print(f"{data_name} {method}: {row['metrics']}", flush=True)
    if args.results == RESULTS:
        PAGE.write_text(page(), encoding="utf-8")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


if __name__ == "__main__":
    main()
