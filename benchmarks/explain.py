"""Do explanations name the words that matter? Delete five of them, and see what the label loses beside five at random.

    python benchmarks/explain.py --data ../shared/data --only eurlex57k --methods linear,knn --train-texts 3000

For each of some held-out texts of at least 20 different words, a label is explained: the model's best one, and its
fifth. Then up to five words that speak for it are deleted wherever they stand; and five at random, of the text's other
words (`better`) or of all of them (`of all`, where the draw may hit the same words). Both are shares of texts where the
label's score falls further without the named words; equal falls count against these. `ms` is the median time of
`explain` for one text on two threads; `P@1` tells how well the model tags 1,000 held-out texts. Results:
results/explain.json, one row per data set and method; a run overwrites its own rows only.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail
from longtail.data.dataset import Split
from longtail.explain.occlusion import LIST_LENGTH, log_odds, scores_of
from longtail.explain.words import TextWords
from longtail.methods import create_method
from longtail.methods.base import Method
from longtail.run.run import Run
from longtail.text.readings import TextReadings

RESULTS = Path(__file__).parent / "results" / "explain.json"
LEAST_WORDS, DELETED = 20, 5
DATA = ("debtags", "eurlex57k")
FEW = {"epochs": 3}
SMALL = {
    "model": "all-MiniLM-L6-v2",
    "pooling": "mean",
    "n_layers": 1,
    "trainable_layers": 2,
    "tokens": {"max_tokens": 64},
}
SMALL_TRAINING = {"epochs": 4, "batch_size": 32, "rate": 5e-4, "head_rate": 2e-2, "bottleneck_rate": 1e-2}
"""A small encoder whose last two layers are trained on the first 64 tokens."""
QUICK: dict[str, dict[str, Any]] = {
    "linear": {},
    "linear/fast": {},
    "linear/parabel": {},
    "knn": {},
    "knn/words": {},
    "lexical": {},
    "stack/cpu": {},
    "fasttext": {"training": FEW},
    "xml-cnn": {"training": FEW},
    "xt": {"training": FEW},
    "attentionxml": {"training": FEW},
    "treaderxml": {"training": FEW},
    "xbert": {"recalls": [{"kind": "linear"}]},
    "lightxml": {"encoders": [SMALL], "training": SMALL_TRAINING},
    "aplc-xlnet": {"encoder": SMALL, "training": SMALL_TRAINING},
    "xr-transformer": {
        "encoders": [{"kind": "transformer", **SMALL}],
        "fine_tuning": {"training": [{**SMALL_TRAINING, "epochs": epochs} for epochs in (1, 1, 2)]},
    },
}
"""Methods that learn on a CPU within minutes, and options that shorten it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--only", nargs="*", default=DATA)
    parser.add_argument("--methods", default=",".join(QUICK))
    parser.add_argument("--train-texts", type=int, help="training texts, at most; all by default")
    parser.add_argument("--texts", type=int, default=200, help="held-out texts that are explained")
    parser.add_argument("--models", type=Path, help="folder in which trained models are kept")
    parser.add_argument("--show", action="store_true", help="print rows instead of writing them")
    arguments = parser.parse_args()
    for name in arguments.only:
        data = longtail.load_dataset(arguments.data / name)
        train = data.train.take(np.arange(len(data.train))[: arguments.train_texts])
        held = data.splits.get("dev") or data.test
        texts = long_texts(held, arguments.texts)
        for method in arguments.methods.split(","):
            model = trained(method, train, arguments.models and arguments.models / f"{name}-{method.replace('/', '-')}")
            row = measured(model, texts) | {"n_train": len(train), "P@1": first_right(model, held)}
            print(name, method, json.dumps(row), flush=True)
            if not arguments.show:
                write(name, method, row)


def write(name: str, method: str, row: dict[str, Any]) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results.setdefault(name, {})[method] = row
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def trained(method: str, train: Split, folder: Path | None) -> Method:
    if folder is not None and folder.exists():
        return longtail.load_model(folder)
    model = create_method(method, {"calibrate": False}, QUICK.get(method, {})).fit(train)
    if folder is not None:
        model.save(folder)
    return model


def first_right(model: Method, held: Split) -> float:
    """Return the share of some held-out texts whose first label is right."""
    some = held.take(np.arange(min(len(held), 1000)))
    ids = some.vocabulary.ids
    suggested = model.predict(some, 1)
    right = [
        bool(row) and row[0].id in {ids[n] for n in labels} for row, labels in zip(suggested, some.labels, strict=True)
    ]
    return round(float(np.mean(right)), 4)


def long_texts(held: Split, n: int) -> list[dict[str, str]]:
    """Return some texts of at least `LEAST_WORDS` different words."""
    rows = np.random.default_rng(0).permutation(len(held))
    columns = held.texts.column_names
    texts: list[dict[str, str]] = []
    for row in rows.tolist():
        fields = {name: held.texts[name][row].as_py() for name in columns}
        if len(TextWords.of(fields)) >= LEAST_WORDS:
            texts.append(fields)
        if len(texts) == n:
            break
    return texts


def measured(model: Method, texts: list[dict[str, str]]) -> dict[str, Any]:
    """Return how often the named words matter more, and how long an explanation takes."""
    drawn, run = np.random.default_rng(1), Run()
    better: dict[str, list[bool]] = {"best label": [], "fifth label": []}
    methods: set[str] = set()
    of_all: list[bool] = []
    seconds: list[float] = []
    for fields in texts:
        lists = model._in_vocabulary(model._top_k(TextReadings.of([fields]), 5, run))
        for which, place in zip(better, (0, 4), strict=True):
            label = int(lists.labels[0, place])
            if label < 0:
                continue
            start = time.perf_counter()
            explanation = model.explain(fields, model.vocabulary_.ids[label])
            seconds.append(time.perf_counter() - start)
            methods.add(explanation.method)
            words = TextWords.of(explanation.fields)
            number = {form: at for at, form in enumerate(words.forms)}
            named = [number[word.word] for word in explanation.top(DELETED)]
            order = drawn.permutation(len(words)).tolist()
            others = [word for word in order if word not in named][:DELETED]
            variants = [words.without(some) for some in (named, others, order[:DELETED])]
            of_variants = model._in_vocabulary(model._top_k(TextReadings.of(variants), LIST_LENGTH, run))
            left = log_odds(scores_of(of_variants, label))
            better[which].append(bool(left[0] < left[1]))
            of_all.append(bool(left[0] < left[2]))
    every = [one for some in better.values() for one in some]
    return {
        "method": "/".join(sorted(methods)),
        "n": len(every),
        "better": round(float(np.mean(every)), 4),
        **{which: round(float(np.mean(some)), 4) for which, some in better.items() if some},
        "of all": round(float(np.mean(of_all)), 4),
        "ms": round(1000 * float(np.median(seconds)), 1),
    }


if __name__ == "__main__":
    main()
