"""A stack whose members were trained apart: some here, a network on another machine (network_lists.py).

    python benchmarks/stack_of_lists.py DATA [--network FOLDER] [--without NAMES]   results/real_data/<data>/<row>.json

It does what `method=stack` does with `n_folds` and rows of network_lists.py: each member is trained without a fold and
asked about its texts, and again on all texts (the network is not), and the ranker learns from the lists. Lists of
members are kept in benchmarks/work/lists, so that rankers can be compared without training again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from network_lists import LIST_LENGTH, METRICS, N_FOLDS, SEED, folds_and_rows, held_out_of, trained_on

import longtail
from longtail.data.dataset import Split
from longtail.evaluation import occurs_in, truth_for
from longtail.metrics import BootstrapOptions, MetricOptions, evaluate, intervals
from longtail.run.run import Run
from longtail.scores.chain import Chain
from longtail.stacking.candidate_ranker import CandidateRanker
from longtail.stacking.trees import TreesOptions
from longtail.types import NO_LABEL, TopK

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run
from real_data import RESULTS, SHARED, threshold_figures

LISTS = Path(__file__).resolve().parent / "work" / "lists"
MEMBERS = ("linear", "linear/letters", "knn", "lexical")
BEGINNING = "linear-beginning"
"""One more member for long texts: `linear` that reads the first 80 words."""
OPTIONS = {BEGINNING: ("linear", {"features": {"blocks": [{"max_words": 80}]}})}
K = 20


def member_lists(data_name: str, member: str, threads: int) -> dict[str, TopK]:
    """Return a member's lists of the texts that the ranker learns from, and of the held-out ones; made once."""
    file = LISTS / data_name / f"{member.replace('/', '-')}.npz"
    if not file.exists():
        data = longtail.load_dataset(SHARED / "data" / data_name)
        train, (_, held_out) = trained_on(data), held_out_of(data)
        folds, asked = folds_and_rows(train, data_name)
        arrays = {}
        for which, split, texts in (
            ("asked", train.take(np.flatnonzero(folds != 0)), train.take(asked)),
            ("held_out", train, held_out),
        ):
            method, options = OPTIONS.get(member, (member, {}))
            model = longtail.create_method(method, {"seed": SEED, "calibrate": False, **options})
            model.fit(split, threads=threads)
            lists = in_labels_of(train, model.top_k(texts, LIST_LENGTH, threads=threads), model.vocabulary_.ids)
            arrays |= {f"{which}_labels": lists.labels, f"{which}_scores": lists.scores}
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **arrays)
    stored = np.load(file)
    return {which: TopK(stored[f"{which}_labels"], stored[f"{which}_scores"]) for which in ("asked", "held_out")}


def network_lists(file: Path, train: Split) -> dict[str, TopK]:
    """Return the lists that network_lists.py wrote."""
    stored = np.load(file)
    lists = {}
    for key in stored.files:
        which, _, what = key.rpartition("_")
        if what == "labels":
            labels = stored[key].astype(np.int32)
            labels[labels == 65535] = NO_LABEL
            scores = stored[f"{which}_scores"].astype(np.float32)
            named = in_labels_of(train, TopK(labels, scores), stored["ids"].tolist())
            lists["asked" if which == "asked" else "held_out"] = named
    return lists


def in_labels_of(train: Split, lists: TopK, ids: list[str]) -> TopK:
    """Return lists in label numbers of the training texts."""
    number = {name: place for place, name in enumerate(train.vocabulary.ids)}
    own = np.array([number[name] for name in ids], np.int32)
    return TopK(np.where(lists.labels == NO_LABEL, np.int32(NO_LABEL), own[lists.labels]), lists.scores)


def measure(data_name: str, members: list[str], network: Path | None, threads: int, ranker: dict[str, Any]) -> Any:
    """Return figures of a stack, and of its members."""
    data = longtail.load_dataset(SHARED / "data" / data_name)
    train, (name, held_out) = trained_on(data), held_out_of(data)
    folds, asked = folds_and_rows(train, data_name)
    lists = {member: member_lists(data_name, member, threads) for member in members}
    if network is not None:
        lists["lightxml"] = network_lists(network / f"{data_name}.npz", train)
    run, start = Run.of(None, threads), time.process_time()
    of_asked = [of["asked"] for of in lists.values()]
    learned = CandidateRanker.fit(of_asked, train, asked, folds, TreesOptions(**ranker), seed=SEED, run=run)
    ranker_s, start = time.process_time() - start, time.process_time()
    scored = learned.ranker.top_k([of["held_out"] for of in lists.values()], held_out.texts, LIST_LENGTH, run)
    ask_s = time.process_time() - start
    predicted = Chain((learned.calibration,)).apply(scored, K, None)
    truth, counts = truth_for(train.vocabulary, held_out)[0], train.labels.texts_per_label()
    counts = np.pad(counts, (0, truth.n_labels - len(counts)))
    options = MetricOptions(at=(1, 5, K))

    def figures(of: TopK, rows: Any = slice(None)) -> dict[str, float]:
        texts = np.arange(len(held_out))[rows]
        some = TopK(of.labels[texts], of.scores[texts])
        values = evaluate(some, truth.take(texts), counts, len(train), options).values
        return {metric: values[metric] for metric in METRICS} | {"n_texts": len(texts)}

    def with_intervals(texts: Any) -> dict[str, Any]:
        some = TopK(predicted.labels[texts], predicted.scores[texts])
        drawn = intervals(some, truth.take(texts), counts, len(train), options, BootstrapOptions()).plain()["metrics"]
        return {metric: drawn[metric] for metric in METRICS}

    languages = np.array(held_out.texts["lang"].to_pylist()) if "lang" in held_out.texts.column_names else np.array([])
    return {
        "data": data_name,
        "method": "stack of lists",
        "members": {member: figures(of["held_out"]) for member, of in lists.items()},
        "ranker": ranker,
        "n_folds": N_FOLDS,
        "n_ranked": len(asked),
        "n_train": len(train),
        "split": name,
        "n_texts": len(held_out),
        "metrics": figures(predicted),
        "intervals": with_intervals(np.arange(len(held_out))),
        "new": figures(predicted, ~occurs_in(held_out, train)),
        "languages": {
            of: {"n_texts": int((languages == of).sum())} | with_intervals(np.flatnonzero(languages == of))
            for of in np.unique(languages).tolist()
        },
        **threshold_figures((learned.calibration,), predicted, truth),
        "ranker_cpu_s": ranker_s,
        "ranker_cpu_ms_per_text": 1000 * ask_s / len(held_out),
        "run": describe_run(threads),
    }


def main() -> None:
    """Measure one stack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--network", type=Path, help="folder that network_lists.py wrote to")
    parser.add_argument("--members", default=",".join(MEMBERS), help=f"names of methods; {BEGINNING} is another")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranker", type=json.loads, default={}, help="options of the ranker, as JSON")
    parser.add_argument("--keep", metavar="ROW", help="write the result under this name")
    args = parser.parse_args()
    row = measure(args.data, args.members.split(","), args.network, args.threads, args.ranker)
    if args.keep:
        file = RESULTS / args.data / f"{args.keep}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(row | {"method": args.keep}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in row.items() if key not in ("run", "intervals")}, indent=1))


if __name__ == "__main__":
    main()
