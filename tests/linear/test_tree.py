"""A trained tree against plain dense arithmetic, and the docs/methods/xbert.md#invariants 7 to 9 and 12."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.kernels.reference.beam import log_score
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.linear.layer import Layer
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, RankerOptions, fit_tree
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.types import LabelMatrix

from .problems import N_FEATURES, N_LABELS, N_TEXTS, problem

ONE = Run(LocalEngine(1))
DenseWeights = Callable[[Layer, int], tuple[Any, Any]]
PlainScores = Callable[..., tuple[Any, Any]]
LABELS = np.arange(N_LABELS)
INDEX = index_of_groups([np.split(LABELS, [10]), np.split(LABELS, [4, 10, 17])], N_LABELS)


def train(
    index: LabelIndex = INDEX,
    search: BeamOptions | None = None,
    matcher: dict[str, Any] | None = None,
    given: tuple[sp.csr_matrix, LabelMatrix] | None = None,
    **ranker: Any,
) -> LinearTree:
    features, labels = given or problem()
    return fit_tree(
        Rows.of(features),
        labels,
        index,
        matcher=SolverOptions(**(matcher or {})),
        ranker=RankerOptions(**{"n_recalled": 2, **ranker}),
        search=search or BeamOptions(),
        run=ONE,
    )


@pytest.fixture
def plain_scores(dense_weights: DenseWeights) -> PlainScores:
    return partial(scores_by, dense_weights)


def scores_by(
    dense_weights: DenseWeights, tree: LinearTree, index: LabelIndex, texts: Any, search: BeamOptions
) -> tuple[Any, Any]:
    """Log scores of all labels, −inf where the beam did not reach, and of the last clusters that it did reach."""
    above = np.zeros((texts.shape[0], 1))
    for number, (layer, parent) in enumerate(zip(tree.layers, index.parents, strict=True)):
        last = number + 1 == len(tree.layers)
        weights, bias = dense_weights(layer, N_FEATURES)
        own = log_score(texts @ weights + bias, search.label_power if last else search.cluster_power)
        share = search.cluster_weight if last else 1.0
        below = share * np.where(np.isfinite(above), above, 0)[:, parent] + own
        below[~np.isfinite(above[:, parent])] = -np.inf
        if last:
            return below, above
        order = np.argsort(-below, axis=1, kind="stable")
        kept = search.beam if number + 2 == len(tree.layers) else search.upper_beam
        np.put_along_axis(below, order[:, kept:], -np.inf, 1)
        above = below
    raise AssertionError


@pytest.mark.parametrize("negatives", ["cluster", "matcher", "all"])
@pytest.mark.parametrize(
    "search",
    [
        {},
        {"beam": 1},
        {"beam": 3, "upper_beam": 1},
        {"beam": 2, "cluster_weight": 1.0, "label_power": 3},
        {"cluster_power": 0, "label_power": 0, "cluster_weight": 1.0},
        {"cluster_weight": 0.0, "beam": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("index", [INDEX, LabelIndex.flat(N_LABELS)], ids=["tree", "flat"])
def test_predictions_are_those_of_plain_dense_arithmetic(
    plain_scores: PlainScores, index: LabelIndex, search: dict[str, Any], negatives: str
) -> None:
    options = BeamOptions(**search)
    tree = train(index, options, negatives=negatives)
    texts = problem(seed=1)[0]
    expected, _ = plain_scores(tree, index, texts, options)
    for rows in (texts, texts[:5]):  # the way of many texts, and of few
        found = tree.predict(Rows.of(rows), 8, options, ONE)
        order = np.argsort(-expected[: rows.shape[0]], axis=1, kind="stable")[:, :8]
        best = np.take_along_axis(expected[: rows.shape[0]], order, 1)
        reached = np.isfinite(best)
        np.testing.assert_array_equal(found.labels >= 0, reached)
        np.testing.assert_allclose(found.scores[reached], np.exp(best[reached]), rtol=1e-3, atol=1e-30)
        # Where rounding could not have changed the order, it is the same.
        gaps = -np.diff(np.where(reached, best, -1e9), prepend=np.inf, append=-np.inf, axis=1) > 1e-4
        clear = gaps[:, 1:] & gaps[:, :-1]
        np.testing.assert_array_equal(found.labels[reached & clear], order[reached & clear])
        assert (reached & clear).sum() > reached.sum() / 2


def test_scores_lie_between_zero_and_one_and_below_those_of_their_cluster(plain_scores: PlainScores) -> None:
    search = BeamOptions(beam=2, cluster_weight=1.0)
    tree = train(search=search)
    texts = problem(seed=1)[0]
    found = tree.predict(Rows.of(texts), N_LABELS, search, ONE)
    _, clusters = plain_scores(tree, INDEX, texts, search)
    real = found.labels >= 0
    assert ((found.scores[real] >= 0) & (found.scores[real] <= 1)).all()
    assert (np.diff(np.where(real, found.scores, -np.inf)[:, :4], axis=1) <= 0).all()
    for row in range(N_TEXTS):
        kept = found.labels[row][real[row]]
        assert len(set(kept.tolist())) == len(kept)
        above = clusters[row, INDEX.parents[-1][kept]]
        assert np.isfinite(above).all()  # labels of other clusters are absent
        assert (found.scores[row][real[row]] <= np.exp(above) * (1 + 1e-5)).all()
        assert len(kept) <= 2 * INDEX.sizes().max()


def test_what_the_clusters_miss_no_ranker_can_find(plain_scores: PlainScores) -> None:
    search = BeamOptions(beam=1)
    features, labels = problem()
    tree = train(search=search)
    found = tree.predict(Rows.of(features), N_LABELS, search, ONE)
    _, clusters = plain_scores(tree, INDEX, features, search)
    hits, reachable = 0, 0
    for row in range(N_TEXTS):
        hits += len(set(found.labels[row].tolist()) & set(labels[row].tolist()))
        reachable += int(np.isfinite(clusters[row, INDEX.parents[-1][labels[row]]]).sum())
    assert 0 < hits == reachable < len(labels.indices)


def test_it_learns() -> None:
    features, labels = problem()
    found = train().predict(Rows.of(features), 1, BeamOptions(), ONE)
    seen = [found.labels[row, 0] in labels[row] for row in range(N_TEXTS) if row not in (3, 4)]
    assert np.mean(seen) > 0.95


def test_rows_end_with_no_label_when_k_is_larger_than_the_number_of_labels() -> None:
    found = train().predict(Rows.of(problem()[0]), N_LABELS + 6, BeamOptions(), ONE)
    assert found.labels.shape == (N_TEXTS, N_LABELS + 6)
    assert (np.sort(found.labels[:, :N_LABELS], axis=1) == LABELS).all()
    assert (found.labels[:, N_LABELS:] == -1).all()
    assert (found.scores[:, N_LABELS:] == -np.inf).all()


def test_texts_without_words_get_the_same_labels_one_by_one_as_together() -> None:
    tree = train()
    empty = Rows.of(sp.csr_matrix((20, N_FEATURES), dtype=np.float32))
    many, one = tree.predict(empty, 5, BeamOptions(), ONE), tree.predict(empty.part(0, 1), 5, BeamOptions(), ONE)
    assert (many.labels == one.labels).all()
    assert (many.labels >= 0).all()
    assert np.isfinite(many.scores).all()


def test_no_texts_give_no_rows() -> None:
    nothing = Rows.of(sp.csr_matrix((0, N_FEATURES), dtype=np.float32))
    assert train().predict(nothing, 5, BeamOptions(), ONE).labels.shape == (0, 5)


def test_batches_and_threads_do_not_change_predictions() -> None:
    tree, texts = train(), Rows.of(problem(seed=1)[0])
    whole = tree.predict(texts, 5, BeamOptions(), ONE)
    for n_threads in (1, 2):
        found = tree.predict(texts, 5, BeamOptions(), Run(LocalEngine(n_threads)), most=20)
        np.testing.assert_array_equal(found.labels, whole.labels)
        np.testing.assert_array_equal(found.scores, whole.scores)


def test_a_saved_tree_is_the_same(tmp_path: Path) -> None:
    tree, texts = train(), Rows.of(problem(seed=1)[0])
    with write_folder(tmp_path / "t", "test") as writer:
        tree.save(writer, "tree")
    back = LinearTree.load(Folder(tmp_path / "t", "test"), "tree", n_columns=N_FEATURES, n_labels=N_LABELS)
    assert len(back.layers) == len(tree.layers)
    found, expected = (t.predict(texts, 5, BeamOptions(), ONE) for t in (back, tree))
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


# negatives


def same_bits(mine: Layer, theirs: Layer, but: tuple[str, ...] = ()) -> bool:
    return all(np.array_equal(getattr(mine, n), array) for n, array in theirs.arrays().items() if n not in but)


def test_recall_of_all_clusters_is_training_on_all_texts() -> None:
    everyone = train(negatives="all").layers[-1]
    assert same_bits(train(negatives="matcher", n_recalled=4).layers[-1], everyone)
    narrow = train(negatives="matcher", n_recalled=4, search=BeamOptions(beam=1)).layers[-1]
    assert same_bits(narrow, everyone)  # recall in training is as wide as it was asked for
    assert not same_bits(train(negatives="matcher", n_recalled=1).layers[-1], everyone)
    assert not same_bits(train(negatives="cluster").layers[-1], everyone)


def test_one_cluster_is_plain_one_against_all_on_texts_with_labels() -> None:
    features, labels = problem()
    root = LabelIndex((np.zeros(1, np.int32), np.zeros(N_LABELS, np.int32)))
    has_labels = np.flatnonzero(labels.labels_per_text())
    plain = train(LabelIndex.flat(N_LABELS), given=(features[has_labels], labels.take(has_labels)), cost_decay=0.15)
    assert same_bits(train(root, negatives="cluster", cost_decay=0.15).layers[-1], plain.layers[-1])


def test_one_label_a_cluster_gives_rankers_that_say_yes(dense_weights: DenseWeights) -> None:
    features, labels = problem()
    alone = LabelIndex((np.zeros(N_LABELS, np.int32), LABELS.astype(np.int32)))
    for loss in ("squared_hinge", "logistic"):
        weights, bias = dense_weights(
            train(alone, negatives="cluster", loss=loss, threshold=0.0).layers[-1], N_FEATURES
        )
        margins = features @ weights + bias
        for text in range(N_TEXTS):
            assert (margins[text, labels[text]] > 0).all()


@pytest.mark.parametrize("negatives", ["cluster", "matcher", "all"])
@pytest.mark.parametrize("power", [0, 4])
def test_labels_without_texts_come_after_all_others(negatives: str, power: int) -> None:
    features, labels = problem()
    unseen = (LABELS >= 17) | (LABELS == 5)  # one cluster has no texts at all, and one label of another
    without = labels.renumber(np.where(unseen, -1, LABELS), N_LABELS)
    search = BeamOptions(label_power=power, cluster_power=power)
    tree = train(given=(features, without), negatives=negatives, search=search)
    found = tree.predict(Rows.of(features), N_LABELS, search, ONE)
    assert not unseen[found.labels[:, : (~unseen).sum()]].any()
    assert unseen[found.labels[:, (~unseen).sum() :]].all()
    assert (found.scores[:, (~unseen).sum() :] < 1e-6).all()


def test_counts_as_costs_pull_texts_to_the_clusters_of_many_of_their_labels() -> None:
    """A text with two labels in a cluster counts there as two texts."""
    features, labels = problem()
    strict: dict[str, Any] = {"tolerance": 1e-4, "max_passes": 500, "threshold": 0.0, "cost_decay": 0.0}
    counted = train(matcher={"count_costs": True, **strict}).layers[0]
    plain = train(matcher=strict).layers[0]
    assert not np.allclose(counted.bias, plain.bias, atol=1e-3)
    in_first = (INDEX.parents[1][INDEX.parents[2]][labels.indices] == 0).astype(int)
    texts = np.repeat(np.arange(N_TEXTS), labels.labels_per_text())
    n_first, n_second = np.bincount(texts, in_first, N_TEXTS), np.bincount(texts, 1 - in_first, N_TEXTS)
    for cluster, own in enumerate((n_first, n_second)):
        rows = np.repeat(np.arange(N_TEXTS), np.maximum(own, 1).astype(int))
        target = LabelMatrix.from_lists([[0] if own[row] else [] for row in rows], 2)
        copies = train(LabelIndex.flat(2), given=(features[rows], target), **strict).layers[0]
        assert copies.bias[0] == pytest.approx(counted.bias[cluster], abs=2e-3)


def test_the_automatic_decay_falls_with_the_terms_of_a_text() -> None:
    """0.9 · t^−0.4, and never above a half."""
    flat = LabelIndex.flat(2)
    labels = LabelMatrix.from_lists([[0], [1], [0], [0], [1], [0]], 2)
    for n_terms, decay in ((1, 0.5), (12, 0.333), (100, 0.143)):
        rows = sp.csr_matrix(np.random.default_rng(0).random((6, n_terms), np.float32))
        auto = train(flat, given=(rows, labels), cost_decay="auto").layers[0]
        same = train(flat, given=(rows, labels), cost_decay=decay).layers[0]
        np.testing.assert_allclose(auto.bias, same.bias, rtol=1e-3)


@pytest.mark.parametrize(("levels", "wide"), [([10], False), ([5, 10], True)])
def test_the_deep_beam_stands_for_the_upper_one_from_three_levels_of_clusters_on(levels: list[int], wide: bool) -> None:
    cuts = [[10], *([[5, 10, 15]] if len(levels) > 1 else []), [3, 5, 8, 10, 13, 15, 17]]
    index = index_of_groups([np.split(LABELS, cut) for cut in cuts], N_LABELS)
    tree, texts = train(index), Rows.of(problem()[0])
    narrow, deep, broad = (
        tree.predict(texts, N_LABELS, BeamOptions(beam=8, **given), ONE)
        for given in ({"upper_beam": 1}, {"upper_beam": 1, "deep_beam": 4}, {"upper_beam": 4})
    )
    assert not np.array_equal(narrow.scores, broad.scores)
    np.testing.assert_array_equal(deep.scores, (broad if wide else narrow).scores)
