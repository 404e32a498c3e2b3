"""Labels added from five examples beside labels that were trained: how often is each among the first five?

    python benchmarks/added_labels.py --data ../shared/data/eurlex57k --texts 12000

Some labels are taken out of the training texts. `added` gets them by `LabelEditor.add` with five of their texts each.
`retrained` is trained again with the same five texts labelled, `retrained, all` with all of their texts. Recall@5 is
the share of the assignments of these labels on dev that are among the first five suggestions; P@5 counts all labels.
`added by name` gets their names alone. With --added-only, the rows of retrained models stay those of the last run.
Results: results/added_labels.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_run

from longtail.data.dataset import Split
from longtail.data.load import load_dataset
from longtail.label_editor import LabelEditor
from longtail.methods import create_method, load_model
from longtail.methods.base import Method
from longtail.types import LabelMatrix

RESULTS = Path(__file__).parent / "results" / "added_labels.json"
N_EXAMPLES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of a data set with a dev part")
    parser.add_argument("--method", default="linear")
    parser.add_argument("--texts", type=int, default=12_000, help="training texts that are drawn")
    parser.add_argument("--labels", type=int, default=50, help="labels that are taken out")
    parser.add_argument("--asked", type=int, default=3000, help="texts of dev")
    parser.add_argument("--added-only", action="store_true", help="do not train again with the labels")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    data = load_dataset(args.data)
    train = data.train.take(np.sort(rng.permutation(len(data.train))[: args.texts]))
    dev = data.splits["dev"].take(np.arange(min(args.asked, len(data.splits["dev"]))))
    frequency, in_dev = train.labels.texts_per_label(), dev.labels.texts_per_label()
    usable = np.flatnonzero((frequency >= 15) & (frequency <= 300) & (in_dev >= 3))
    taken = np.sort(rng.choice(usable, args.labels, replace=False))
    texts_of = train.labels.to_scipy().tocsc()
    examples = {int(label): rng.choice(texts_of[:, [label]].nonzero()[0], N_EXAMPLES, replace=False) for label in taken}
    few = {label: set(rows.tolist()) for label, rows in examples.items()}
    every = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    key = f"{args.data.name} {args.method}"
    rows: dict[str, Any] = dict(every[key]["rows"]) if args.added_only else {}
    with tempfile.TemporaryDirectory() as folder:
        for name, split in (
            ("without", without(train, taken, {})),
            ("retrained", without(train, taken, few)),
            ("retrained, all", train),
        ):
            if args.added_only and name != "without":
                continue
            start = time.perf_counter()
            model = create_method(args.method).fit(split)
            rows[name] = {"train_s": time.perf_counter() - start, **measured(model, dev, taken)}
            if name == "without":
                model.save(f"{folder}/m")
            print(name, rows[name], flush=True)
        for name, with_examples in (("added", True), ("added by name", False)):
            load_model(f"{folder}/m").save(f"{folder}/{name}")
            rows[name] = added(f"{folder}/{name}", train, dev, examples if with_examples else dict.fromkeys(examples))
            print(name, rows[name], flush=True)
    shown = {
        "data": args.data.name,
        "method": args.method,
        "texts": len(train),
        "labels": len(taken),
        "asked": len(dev),
    }
    every[key] = {**shown, "run": describe_run(2), "rows": rows}
    RESULTS.write_text(json.dumps(every, indent=1) + "\n")


def added(folder: str, train: Split, dev: Split, examples: dict[int, Any]) -> dict[str, Any]:
    """Add labels to a saved model, each with some training texts or with none, and return the figures of it."""
    start = time.perf_counter()
    editor = LabelEditor(folder)
    opened_s = time.perf_counter() - start
    before = editor.model.top_k(dev, 20)
    took = []
    for label, texts in examples.items():
        start = time.perf_counter()
        chosen = [] if texts is None else train.texts.take(np.sort(texts)).to_pylist()
        fields = [{key: value for key, value in one.items() if isinstance(value, str)} for one in chosen]
        vocabulary = train.vocabulary
        editor.add(vocabulary.names[label], fields, label_id=vocabulary.ids[label] + "+")
        took.append(time.perf_counter() - start)
    model, taken = load_model(folder), np.array(list(examples))
    harm = editor.harm(dev)
    return {
        "add_s": float(np.median(took)),
        "open_s": opened_s,
        **measured(model, dev, taken),
        "old scores unchanged": same_old_scores(before, model, dev),
        "right before": harm.n_right_before,
        "pushed out": harm.n_displaced,
    }


def without(split: Split, taken: np.ndarray[Any, Any], keep: dict[int, set[int]]) -> Split:
    """Return the split where texts lose the labels that were taken out, but for those to keep."""
    out = set(taken.tolist())
    rows = [
        [int(label) for label in labels if label not in out or text in keep.get(int(label), ())]
        for text, labels in enumerate(split.labels)
    ]
    return replace(split, labels=LabelMatrix.from_lists(rows, split.labels.n_labels))


def measured(model: Method, dev: Split, taken: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return recall@5 of the labels that were taken out, and P@5 of all labels."""
    ids = dev.vocabulary.ids
    chosen = {ids[label] for label in taken}
    hits = n_assigned = right = 0
    for row, labels in zip(model.predict(dev, 5), dev.labels, strict=True):
        truth = {ids[label] for label in labels}
        suggested = {one.id.removesuffix("+") for one in row}
        right += len(truth & suggested)
        n_assigned += len(truth & chosen)
        hits += len(truth & chosen & suggested)
    return {"recall@5": hits / n_assigned, "P@5": right / len(dev) / 5, "assignments": n_assigned}


def same_old_scores(before: Any, model: Method, dev: Split) -> bool:
    """Return whether the labels of the training have the scores that they had, to the last bit."""
    added = [edit.label for edit in model.label_history]
    after = model.top_k(dev, 20, deny=added)
    return after.scores.tobytes() == before.scores.tobytes() and bool((after.labels == before.labels).all())


if __name__ == "__main__":
    main()
