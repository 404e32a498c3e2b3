"""Lists of a network for a stack, made on another machine: where a GPU is lent, but neither data nor time are there.

    python benchmarks/network_lists.py prepare DATA FOLDER          here: what training needs, in few bytes
    python benchmarks/network_lists.py train DATA FOLDER OUT [...]   there: trains and asks; OUT/<data>.npz, .json
    python benchmarks/stack_of_lists.py DATA --network OUT           here: the stack (see there)

The network is trained without one of `N_FOLDS` folds of the training texts, and asked about texts of this fold, from
which the ranker of the stack learns, and about dev, or test where there is no dev. It is not trained again on all
texts, which halves its time. `prepare` cuts texts where the network will have stopped reading them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

import longtail
from longtail.data.dataset import Split
from longtail.labels.model_labels import labels_of_model, with_seen_labels
from longtail.metrics import MetricOptions
from longtail.stacking.folds import folds_of, texts_of_folds
from longtail.types import NO_LABEL

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run
from real_rows import READERS, TRAINING

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
N_FOLDS, SEED = 10, 0
MOST_RANKED = {"yso-finna-en": 30_000}
"""From how many texts of the fold the ranker learns; by default from all of them."""
LIST_LENGTH = 40
METRICS = ("P@1", "P@5", "RP@5", "nDCG@5", "F1@5", "PSP@5")
CHARACTERS = 9
"""Characters that are kept for each token that the network reads; English words and marks have fewer."""


def trained_on(data: Any) -> Split:
    """Return the training texts with the labels that a model may know: see real_data.py."""
    train: Split = data.train if data.official is not None else with_seen_labels(data.train)
    space = labels_of_model(train, train.official)
    return replace(train, labels=replace(train.labels, n_labels=len(space.vocabulary)), vocabulary=space.vocabulary)


def held_out_of(data: Any) -> tuple[str, Split]:
    """Return the texts that figures are of, with their name."""
    return ("dev", data.dev) if "dev" in data.splits else ("test", data.test)


def folds_and_rows(train: Split, data_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the fold of each training text, and the texts of the first fold that the ranker learns from."""
    folds = folds_of(train, N_FOLDS, SEED)
    return folds, texts_of_folds(folds, 1, MOST_RANKED.get(data_name, len(train)), SEED)


def prepare(data_name: str, folder: Path) -> None:
    """Write the data set with its texts cut, and which training texts are left out and asked about."""
    source = SHARED / "data" / data_name
    data = longtail.load_dataset(source)
    folds, asked = folds_and_rows(trained_on(data), data_name)
    target = folder / data_name
    target.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target / "rows.npz", trained=np.flatnonzero(folds != 0), asked=asked)
    shutil.copy(source / "labels.txt", target)
    n_characters = CHARACTERS * READERS[data_name]["max_tokens"]
    for name in ("train", held_out_of(data)[0]):
        split = data.splits[name]
        ids, of_texts = split.vocabulary.ids, np.split(split.labels.indices, split.labels.indptr[1:-1])
        lines = (
            json.dumps({"text": text[:n_characters], "labels": [ids[label] for label in labels]})
            for text, labels in zip(split.texts["text"].to_pylist(), of_texts, strict=True)
        )
        packed = zstandard.ZstdCompressor(level=19).compress("\n".join(lines).encode())
        (target / f"{name}.jsonl.zst").write_bytes(packed)


def train(data_name: str, folder: Path, out: Path, encoder: str, options: list[str]) -> None:
    """Train the network on what `prepare` wrote; write its lists, and how it does alone."""
    data = longtail.load_dataset(folder / data_name)
    split, (name, held_out) = with_seen_labels(data.train), held_out_of(data)
    rows = np.load(folder / data_name / "rows.npz")
    reader = {"model": encoder, "n_layers": 5, "tokens": {"max_tokens": READERS[data_name]["max_tokens"]}}
    training = {"rate": 1e-4, "head_rate": 2e-3, "clip_norm": 1.0, **TRAINING[data_name]}
    training |= {key: float(value) for key, value in (option.split("=") for option in options)}
    training["batch_size"] = int(training.get("batch_size", 64))
    network = longtail.create_method("lightxml", {"calibrate": False, "encoders": [reader], "training": training})
    start = time.perf_counter()
    network.fit(split.take(rows["trained"]))
    train_s, start = time.perf_counter() - start, time.perf_counter()
    asked = network.top_k(split.take(rows["asked"]), LIST_LENGTH)
    evaluation = longtail.evaluate_model(network, held_out, MetricOptions(at=(1, 5, LIST_LENGTH)))
    ask_s = time.perf_counter() - start
    lists = {"asked": asked, name: evaluation.predicted}
    out.mkdir(parents=True, exist_ok=True)
    arrays = {f"{which}_labels": np.where(of.labels == NO_LABEL, 65535, of.labels) for which, of in lists.items()}
    arrays = {key: value.astype(np.uint16) for key, value in arrays.items()}
    arrays |= {f"{which}_scores": of.scores.astype(np.float16) for which, of in lists.items()}
    np.savez_compressed(out / f"{data_name}.npz", ids=np.array(network.vocabulary_.ids), **arrays)
    facts = {"train_s": train_s, "ask_s": ask_s, "training": training, "n_trained": len(rows["trained"])}
    facts |= {"metrics": {key: evaluation.metrics.values[key] for key in METRICS}, "run": describe_run(1)}
    (out / f"{data_name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(json.dumps(facts))


def main() -> None:
    """Prepare, or train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("prepare", "train"))
    parser.add_argument("data")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--encoder", default=str(SHARED / "models" / "e5-small"), help="folder of the encoder")
    parser.add_argument("--training", nargs="*", default=[], metavar="OPTION=NUMBER", help="options of the training")
    args = parser.parse_args()
    if args.action == "prepare":
        prepare(args.data, args.folder)
    else:
        train(args.data, args.folder, args.out, args.encoder, args.training)


if __name__ == "__main__":
    main()
