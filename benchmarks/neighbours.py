"""Exact sparse neighbours beside the plain scan of all lists: python benchmarks/neighbours.py [--data eurlex57k]

Fits `knn` with its default options and searches for the neighbours of texts drawn at random: of the evaluation texts,
and of training texts without themselves and their copies. Each also by the loop that `kernels/reference/nearest`
describes, compiled: every list of the text's terms is added up, then all totals are looked through. Both take the same
points and one thread, in turn, three rounds each; times are processor time of the fastest round. Lists and cosines must
be the same to the last bit.

    touched_per_text     places of lists that the plain scan adds
    alone_ms             each text by a call of its own, mean
    first_search_s       what the first search of a pool takes, compiling included: the pool is turned into rows

Results: results/neighbours.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from features import EVAL_SPLIT
from machine import describe_run

import longtail
from longtail.data.dataset import Split
from longtail.kernels.native.jit import kernel
from longtail.kernels.rows import Rows
from longtail.neighbours import NeighbourIndex, Neighbours
from longtail.neighbours.base import Query
from longtail.neighbours.sparse import unit_rows
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.text.readings import TextReadings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "neighbours.json"
K = 30
ROUNDS = 3


@kernel
def plain_scan(indptr, indices, values, ptr, rows, weights, groups, pool_groups, totals, best, best_products):  # type: ignore[no-untyped-def]
    """Add up all lists, as the search did before it left lists out."""
    k = best.shape[1]
    for i in range(len(best)):
        for p in range(indptr[i], indptr[i + 1]):
            value, column = values[p], indices[p]
            for q in range(ptr[column], ptr[column + 1]):
                totals[rows[q]] += value * weights[q]
        n_found = 0
        group = groups[i]
        last = np.float32(-np.inf)
        for row in range(len(totals)):
            product = totals[row]
            totals[row] = 0
            if (n_found == k and product <= last) or (group >= 0 and pool_groups[row] == group):
                continue
            at = n_found if n_found < k else k - 1
            while at > 0 and best_products[i, at - 1] < product:
                best[i, at], best_products[i, at] = best[i, at - 1], best_products[i, at - 1]
                at -= 1
            best[i, at], best_products[i, at] = row, product
            n_found = min(n_found + 1, k)
            last = best_products[i, n_found - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default="debtags,tibkat-gnd,eurlex57k", help="by commas")
    parser.add_argument("--texts", type=int, default=2000, help="drawn from each side")
    parser.add_argument("--shared", type=Path, default=HERE.parent.parent / "shared")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"data": {}}
    results["run"] = describe_run(1)
    for name in options.data.split(","):
        results["data"][name] = _measure(options.shared.resolve() / "data" / name, options.texts)
        print(name, json.dumps(results["data"][name], indent=1))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _measure(folder: Path, n_texts: int) -> dict[str, Any]:
    data = longtail.load_dataset(folder)
    index, points_of = _fitted(data.train)
    lists = index.arrays()
    shape = {"n_train": len(index), "n_columns": len(lists["ptr"]) - 1, "n_places": len(lists["texts"]), "k": K}
    sides = {"evaluation": (getattr(data, EVAL_SPLIT[folder.name]), False), "training_left_out": (data.train, True)}
    measured = {side: _compare(index, points_of, *asked, n_texts) for side, asked in sides.items()}
    return {**shape, "split": EVAL_SPLIT[folder.name], **measured}


def _fitted(train: Split) -> tuple[NeighbourIndex, Callable[[Split], tuple[Rows, Any]]]:
    pool = longtail.create_method("knn").fit(train).pool_  # type: ignore[attr-defined]

    def points_of(split: Split) -> tuple[Rows, Any]:
        readings = TextReadings.of(split)
        points = pool.points.of(readings.table, readings.features, Run())
        return points, pool.points.hashes(readings.table, points)

    return pool.index, points_of


def _compare(
    index: NeighbourIndex, points_of: Callable[[Split], tuple[Rows, Any]], split: Split, left_out: bool, n: int
) -> dict[str, Any]:
    drawn = np.sort(np.random.default_rng(0).choice(len(split), min(n, len(split)), replace=False))
    points, hashes = points_of(split.take(drawn))
    asked = hashes if left_out else None
    lists, one = index.arrays(), Run(LocalEngine(1))
    _, first_s = _timed(lambda: index.nearest(points.part(0, 1), K, run=one))
    query = Query(points, K, index._groups_of(asked, len(points)), index._contents[1])

    def plain() -> Neighbours:
        rows, best = unit_rows(points), Neighbours.none(len(points), K)
        plain_scan(
            rows.indptr, rows.indices, rows.values, lists["ptr"], lists["texts"], lists["weights"],
            query.groups, query.pool_groups, np.zeros(len(index), np.float32), best.texts, best.cosines,
        )  # fmt: skip
        return best

    def pruned() -> Neighbours:
        return index.nearest(points, K, asked, run=one)

    plain(), pruned()  # compiled, and in the caches
    rounds = [(_timed(plain), _timed(pruned)) for _ in range(ROUNDS)]
    (scanned, _), (nearest, _) = rounds[0]
    if scanned.texts.tobytes() != nearest.texts.tobytes() or scanned.cosines.tobytes() != nearest.cosines.tobytes():
        raise SystemExit("the two searches differ")
    plain_s, pruned_s = (min(seconds[side][1] for seconds in rounds) for side in (0, 1))
    few = [points.part(row, row + 1) for row in range(min(300, len(points)))]
    _, alone_s = _timed(lambda: [index.nearest(point, K, run=one) for point in few])
    touched = np.diff(lists["ptr"])[points.indices].sum() / len(points)
    return {
        "n_texts": len(points),
        "touched_per_text": round(float(touched)),
        "plain_ms_per_text": round(plain_s / len(points) * 1e3, 4),
        "pruned_ms_per_text": round(pruned_s / len(points) * 1e3, 4),
        "alone_ms": round(alone_s / len(few) * 1e3, 4),
        "times_faster": round(plain_s / pruned_s, 2),
        "first_search_s": round(first_s, 2),
        "same_bits": True,
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


if __name__ == "__main__":
    main()
