"""How many assignments of labels without training texts a method finds, and how good its lists are.

    python benchmarks/unseen_labels.py --data ../shared/data [--method stack/cpu]        by default `lexical`
    ... --method stack --options '{"members": ["linear/fast", "lexical"]}' --train-texts 15000      a quick look

Labels are drawn from those with training texts and taken out of all training texts; they stay in the vocabulary,
among all others that no training text has. Recall is over the assignments of exactly these labels on dev, in the
first 20 of the lists

    all       in which every label of the vocabulary competes
    unseen    in which only labels without training texts compete: those taken out and those that never had any

with 95 % intervals, by a bootstrap over the texts. `whole` has the metrics of a model trained on everything. Results:
results/unseen_labels.json, those of other methods than `lexical` in unseen_labels-<method>.json; a quick look is named
by its texts as well.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import longtail
from longtail.data.dataset import Split
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions, MetricOptions, intervals
from longtail.types import LabelMatrix, TopK

RESULTS = Path(__file__).parent / "results"
LEXICAL = "lexical"
TAKEN_OUT = {"eurlex57k": 200, "tibkat-gnd": 2000, "yso-finna-en": 0}
WHOLE = ("P@1", "nDCG@5", "R@20", "R@40", "F1@5")
K = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--only", nargs="*", default=list(TAKEN_OUT), choices=list(TAKEN_OUT))
    parser.add_argument("--parts", nargs="*", default=["unseen", "whole"], choices=["unseen", "whole"])
    parser.add_argument("--seed", type=int, default=0, help="which labels are taken out")
    parser.add_argument("--method", default=LEXICAL)
    parser.add_argument("--options", type=json.loads, default={}, help="options of the method, as JSON")
    parser.add_argument("--train-texts", type=int, help="so many training texts, drawn by the seed; by default all")
    parser.add_argument("--threads", type=int, help="all processors unless said")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    arguments = parser.parse_args()
    create = partial(longtail.create_method, arguments.method, arguments.options)
    kind = "".join(f"-{part}" for part in (arguments.method, arguments.train_texts) if part not in (LEXICAL, None))
    file = arguments.results / f"unseen_labels{kind.replace('/', '-')}.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for name in arguments.only:
        data = longtail.load_dataset(arguments.data / name)
        train, held = data.train, data.splits.get("dev") or data.test
        if arguments.train_texts:
            drawn = np.random.default_rng(arguments.seed).permutation(len(train))[: arguments.train_texts]
            train = train.take(np.sort(drawn))
        row = results.setdefault(name, {})
        if TAKEN_OUT[name] and "unseen" in arguments.parts:
            row["unseen"] = unseen(train, held, TAKEN_OUT[name], arguments.seed, create, arguments.threads)
        if "whole" in arguments.parts:
            row["whole"] = whole(train, held, create, arguments.threads)
        file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def unseen(
    train: Split, held: Split, n: int, seed: int, create: Callable[[], Method], threads: int | None
) -> dict[str, Any]:
    """Return recall on labels that are taken out of the training texts."""
    taken = np.sort(
        np.random.default_rng(seed).choice(np.flatnonzero(train.labels.texts_per_label()), n, replace=False)
    )
    keep = np.arange(train.labels.n_labels)
    keep[taken] = -1
    only = np.full(held.labels.n_labels, -1)
    only[taken] = taken
    model, costs = fitted(replace(train, labels=train.labels.renumber(keep, len(keep))), create, threads)
    gold = held.labels.renumber(only, len(only))
    rows = np.flatnonzero(gold.labels_per_text())
    texts, gold = held.take(rows), gold.take(rows)
    without = [model.vocabulary_.ids[label] for label in np.flatnonzero(model.train_counts_ == 0)]
    return {
        "taken_out": n,
        "without_texts": len(without),
        "labels": len(model.vocabulary_),
        "dev_texts": len(texts),
        "dev_assignments": len(gold.indices),
        "seed": seed,
        "R@20": {
            "all": by_language(texts, gold, model.top_k(texts, K)),
            "unseen": by_language(texts, gold, model.top_k(texts, K, allow=without)),
            "ceiling": by_language(texts, gold, model.top_k(texts, len(model.vocabulary_) // 10)),
        },
        **costs,
    }


def whole(train: Split, held: Split, create: Callable[[], Method], threads: int | None) -> dict[str, Any]:
    """Return the metrics of a model that is trained on everything, over all texts and by language."""
    model, costs = fitted(train, create, threads)
    start = time.process_time()
    lists = model.top_k(held, 40)
    costs["predict_cpu_ms"] = round(1000 * (time.process_time() - start) / len(held), 3)
    metrics = {}
    options, draws = MetricOptions(at=(1, 5, 20, 40)), BootstrapOptions(n_resamples=200)
    for language, rows in languages(held):
        got = intervals(
            TopK(lists.labels[rows], lists.scores[rows]),
            held.labels.take(rows),
            model.train_counts_,
            len(train),
            options,
            draws,
        )
        metrics[language] = {"n_texts": len(rows), **{name: rounded(got.plain()["metrics"][name]) for name in WHOLE}}
    return {"metrics": metrics, **costs}


def fitted(train: Split, create: Callable[[], Method], threads: int | None) -> tuple[Method, dict[str, Any]]:
    """Return a trained model and the processor time that it took, kernels compiled before."""
    longtail.Lexical().fit(train.take(np.arange(50)))
    start = time.process_time()
    model = create().fit(train, threads=threads)
    costs = {"train_cpu_s": round(time.process_time() - start, 1), "n_train": len(train)}
    return model, costs | {"options": model.options.plain()}


def by_language(texts: Split, gold: LabelMatrix, lists: TopK) -> dict[str, Any]:
    return {
        language: recall(gold.take(rows), TopK(lists.labels[rows], lists.scores[rows]))
        for language, rows in languages(texts)
    }


def languages(split: Split) -> list[tuple[str, Any]]:
    """Return the row numbers of all texts, and of those of each language where texts have one."""
    groups = [("all", np.arange(len(split)))]
    if "lang" in split.texts.column_names:
        of_texts = np.array(split.texts["lang"].to_pylist())
        groups += [(str(name), np.flatnonzero(of_texts == name)) for name in np.unique(of_texts)]
    return groups


def recall(gold: LabelMatrix, lists: TopK) -> dict[str, float]:
    """Return the share of the assignments that the lists hold, with its interval over texts."""
    hits = np.array([np.isin(gold[row], lists.labels[row]).sum() for row in range(len(gold))])
    sizes = gold.labels_per_text()
    drawn = np.random.default_rng(0).integers(0, len(gold), (1000, len(gold)))
    shares = hits[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return rounded({"value": hits.sum() / sizes.sum(), "low": low, "high": high}) | {"assignments": int(sizes.sum())}


def rounded(values: dict[str, Any]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in values.items()}


if __name__ == "__main__":
    main()
