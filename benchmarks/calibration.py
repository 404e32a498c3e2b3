"""How well calibrated every method is, and what it costs; each method in a process of its own.

    python benchmarks/calibration.py [--data NAMES] [--methods NAMES] [--threads N]   trains, measures, writes tables
    python benchmarks/calibration.py --table-only                                     docs/calibration.md from results

Results: results/calibration/<data>/<method>.json. Measured on dev; where a data set has no dev part, on a tenth of the
training texts (4,000 at most) that is held out. Networks learn small data only: they are there for their calibration,
not for their accuracy.
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

from longtail.metrics import BootstrapOptions, MetricOptions
from longtail.scores.calibrate import are_right
from longtail.types import NO_LABEL, LabelMatrix, TopK

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run
from real_data import threshold_figures

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
RESULTS = ROOT / "benchmarks" / "results" / "calibration"
PAGE = ROOT / "docs" / "calibration.md"
BEGIN, END = "<!-- measured: made by benchmarks/calibration.py -->\n", "<!-- end of measured -->"
DATA = ("debtags", "eurlex57k", "tibkat-gnd")
WITHOUT_NETWORK = ("linear", "knn", "lexical", "stack")
WORDS = {"vectors": {"width": 64}}
ENCODER = {"model": str(SHARED / "models" / "e5-small"), "n_layers": 2, "tokens": {"max_tokens": 48}}
SHORT = {"batch_size": 64, "epochs": 1}
NETWORKS: dict[str, dict[str, Any]] = {
    "fasttext": {"training": {"epochs": 5}},
    "xml-cnn": {"encoder": {**WORDS, "n_filters": 64}, "training": {"epochs": 5}},
    "xt": {"encoder": WORDS, "training": {"epochs": 5}},
    "attentionxml": {"encoder": {"hidden": 64, **WORDS, "tokens": {"max_tokens": 64}}, "training": {"epochs": 3}},
    "treaderxml": {"encoder": {"kind": "reader", **WORDS, "tokens": {"max_tokens": 64}}, "training": {"epochs": 5}},
    "lightxml": {"encoders": [ENCODER], "training": {**SHORT, "rate": 3e-4}},
    "aplc-xlnet": {"encoder": ENCODER, "training": {**SHORT, "rate": 3e-4}},
    "xbert": {"recalls": [{"kind": "transformer", **ENCODER}], "matcher": {"training": SHORT}},
    "xr-transformer": {
        "encoders": [{"kind": "transformer", **ENCODER}],
        "fine_tuning": {"training": [{**SHORT, "n_steps": 150}]},
    },
}
"""Options with which networks are trained in minutes on two cores."""
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
METRICS = ("ECE@1", "ECE@5", "Brier@5", "nDCG@5")
K = 20


def measure(data_name: str, method: str, threads: int) -> dict[str, Any]:
    """Train a method and measure it."""
    import longtail
    from longtail.scores.calibrate import LIST_LENGTH

    data = longtail.load_dataset(SHARED / "data" / data_name)
    data = data if "dev" in data.splits else data.hold_out(seed=0)
    options = NETWORKS.get(method, {})
    longtail.create_method(method, options).fit(data.train.take(np.arange(300)), threads=threads)  # compiles kernels
    model = longtail.create_method(method, options)
    clock = Clock(type(model))
    start = time.process_time()
    model.fit(data.train, threads=threads)
    train_s = time.process_time() - start
    evaluation = longtail.evaluate_model(
        model, data.dev, MetricOptions(at=(1, 5, K)), bootstrap=BootstrapOptions(), threads=threads
    )
    intervals = evaluation.plain()["intervals"]["metrics"]
    lists = model.top_k(data.dev, LIST_LENGTH, threads=threads)
    return {
        "data": data_name,
        "method": method,
        "options": options,
        "n_train": len(data.train),
        "n_texts": len(data.dev),
        "n_calibrated": model.calibration.n_texts,
        "metrics": {name: evaluation.metrics.values[name] for name in METRICS},
        "intervals": {name: intervals[name] for name in METRICS},
        **threshold_figures(model.chain_.steps, evaluation.predicted, evaluation.truth),
        "train_cpu_s": train_s,
        "calibration_cpu_s": clock.seconds,
        "sets": {kind: label_sets(model, lists, evaluation.truth, kind) for kind in ("min_precision", "min_recall")},
        "recall": predicted_recall(model, lists, evaluation.truth),
    }


class Clock:
    """Measures the processor time of everything that a class of methods does after training to be calibrated."""

    def __init__(self, method: Any) -> None:
        self.seconds = 0.0
        calibrate = method._calibrated_chain

        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            chain = calibrate(*arguments)
            self.seconds = time.process_time() - start  # the last one, if there are models inside of the model
            return chain

        method._calibrated_chain = timed


def label_sets(model: Any, lists: TopK, truth: LabelMatrix, kind: str) -> dict[str, Any]:
    """Return what label sets reach on dev, by what was asked for; and the highest level that can be asked for."""
    from longtail.errors import ConfigError
    from longtail.scores.threshold import leave_out_low

    sets = model.calibration.sets
    outcome: dict[str, Any] = {"highest": max(sets.precision if kind == "min_precision" else sets.recall)}
    for level in LEVELS:
        try:
            kept = leave_out_low(lists, sets.threshold(**{kind: level}))
        except ConfigError:
            continue
        right, size = are_right(kept, truth).sum(axis=1), (kept.labels != NO_LABEL).sum(axis=1)
        some = truth.labels_per_text() > 0
        shares = {
            "min_precision": right.sum() / max(size.sum(), 1),
            "min_recall": (right[some] / truth.labels_per_text()[some]).mean(),
        }
        outcome[str(level)] = {"reached": float(shares[kind]), "labels_per_text": float(size.mean())}
    return outcome


def predicted_recall(model: Any, lists: TopK, truth: LabelMatrix) -> dict[str, Any]:
    """Return how near the predicted recall of five labels is to the actual one, over all texts and by route."""
    from scipy.stats import spearmanr

    from longtail.predictions import Predictions

    some = truth.labels_per_text() > 0
    actual = are_right(lists.first(5), truth).sum(axis=1)[some] / truth.labels_per_text()[some]
    predicted = model.calibration.recall.in_lists(lists.scores, lists.first(5).scores)
    routes = np.array(Predictions([[]] * len(predicted), predicted.tolist()).routes)[some]
    predicted = predicted[some]
    rows = {"all": np.ones(len(actual), bool)} | {name: routes == name for name in ("automatic", "review", "hard")}
    by_route = {
        name: {
            "share": float(here.mean()),
            "predicted": float(predicted[here].mean()) if here.any() else None,
            "actual": float(actual[here].mean()) if here.any() else None,
        }
        for name, here in rows.items()
    }
    return {"rank_correlation": float(spearmanr(predicted, actual)[0]), "routes": by_route}


def page() -> str:
    """Return docs/calibration.md with the tables of all results."""
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    tables = (table(data_name) for data_name in DATA)
    return text[:start] + "\n".join(one for one in tables if one) + text[end:]


def table(data_name: str) -> str:
    """Return the tables of a data set, or nothing if it was not measured."""
    files = {json.loads(file.read_text())["method"]: file for file in (RESULTS / data_name).glob("*.json")}
    rows = [json.loads(files[method].read_text()) for method in (*WITHOUT_NETWORK, *NETWORKS) if method in files]
    if not rows:
        return ""
    head = ("", "ECE@5", "ECE@1", "Brier@5", "micro-F1 (best)", "nDCG@5", "longer", "fitted to")
    lines = [f"\n### {data_name}\n", f"{rows[0]['n_train']:,} training texts, {rows[0]['n_texts']:,} of dev.\n"]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        errors = [
            _with_interval(row["metrics"][name], row["intervals"][name]) for name in ("ECE@5", "ECE@1", "Brier@5")
        ]
        f1 = f"{100 * row['micro_f1']:.1f} ({100 * row['best_micro_f1']:.1f})"
        ndcg = f"{100 * row['metrics']['nDCG@5']:.1f}"
        longer = f"{row['calibration_cpu_s'] / (row['train_cpu_s'] - row['calibration_cpu_s']):.0%}"
        lines.append(f"| {' | '.join((row['method'], *errors, f1, ndcg, longer, format(row['n_calibrated'], ',')))} |")
    head = ("", "precision .8", ".9", "highest", "recall .6", ".8", "highest", "predicted, actual R@5", "correlation")
    lines += ["", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        precision, recall, routes = row["sets"]["min_precision"], row["sets"]["min_recall"], row["recall"]["routes"]
        cells = [_reached(precision, "0.8"), _reached(precision, "0.9"), f"{precision['highest']:.3f}"]
        cells += [_reached(recall, "0.6"), _reached(recall, "0.8"), f"{recall['highest']:.3f}"]
        cells += [f"{routes['all']['predicted']:.3f}, {routes['all']['actual']:.3f}"]
        lines.append(f"| {' | '.join((row['method'], *cells, format(row['recall']['rank_correlation'], '.2f')))} |")
    return "\n".join([*lines, ""])


def _reached(sets: dict[str, Any], level: str) -> str:
    """Return what sets of a level reached, and their mean size."""
    if level not in sets:
        return "refused"
    return f"{sets[level]['reached']:.3f} ({sets[level]['labels_per_text']:.1f})"


def _with_interval(value: float, interval: dict[str, float]) -> str:
    return f"{value:.3f} ({interval['low']:.3f}–{interval['high']:.3f})"


def main() -> None:
    """Measure every method on every data set, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--methods", help="by default all on debtags, those without a network on the others")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--table-only", action="store_true")
    parser.add_argument("--row", nargs=2, metavar=("DATA", "METHOD"), help="measure one row in this process")
    args = parser.parse_args()
    if args.row:
        print(json.dumps(measure(*args.row, args.threads)))
        return
    for data_name in () if args.table_only else args.data.split(","):
        usual = (*WITHOUT_NETWORK, *NETWORKS) if data_name == DATA[0] else WITHOUT_NETWORK
        for method in args.methods.split(",") if args.methods else usual:
            run = describe_run(args.threads)
            command = [sys.executable, __file__, "--row", data_name, method, "--threads", str(args.threads)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(ended.stdout.splitlines()[-1]) | {"run": run}
            file = RESULTS / data_name / f"{method.replace('/', '-')}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
            print(f"{data_name} {method}: ECE@5 {row['metrics']['ECE@5']:.4f}", flush=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
