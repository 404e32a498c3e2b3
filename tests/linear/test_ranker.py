"""A ranker below clusters that somebody else recalled: docs/methods/xbert.md#invariants 7 to 9 and 12, and #ties."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.kernels.reference.beam import log_score
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.linear.chunks import ChildWeights, chunk_of, layer_of
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, ScoreOptions, fit_ranker, rank
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, fit_tree
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.types import NO_LABEL, LabelMatrix

from .problems import N_FEATURES, N_LABELS, N_TEXTS, problem

ONE = Run(LocalEngine(1))
DenseWeights = Callable[[Layer, int], tuple[Any, Any]]
LABELS = np.arange(N_LABELS)
INDEX = index_of_groups([np.split(LABELS, [4, 10, 17])], N_LABELS)
N_CLUSTERS = 4


def recalled(seed: int = 0, b: int = 2, n_texts: int = N_TEXTS) -> tuple[Any, Any]:
    """Clusters and log scores as a matcher may hand them over; some texts have fewer clusters, one has none."""
    rng = np.random.default_rng(seed)
    clusters = np.array([rng.permutation(N_CLUSTERS)[:b] for _ in range(n_texts)], np.int32).reshape(n_texts, b)
    clusters[rng.random(clusters.shape) < 0.2] = -1
    clusters[:1] = -1
    scores = np.where(clusters >= 0, -2 * rng.random(clusters.shape), -np.inf).astype(np.float32)
    return clusters, scores


def fit(index: LabelIndex = INDEX, clusters: Any = None, given: Any = None, **options: Any) -> Layer:
    features, labels = given or problem()
    return fit_ranker(Rows.of(features), labels, index, clusters, RankerOptions(**options), run=ONE)


@cache
def ranker() -> Layer:
    return fit(clusters=recalled()[0])


def same_bits(mine: Layer, theirs: Layer) -> bool:
    return all(np.array_equal(getattr(mine, name), array) for name, array in theirs.arrays().items())


# the same as inside a linear tree


def by_tree(negatives: str) -> tuple[LinearTree, BeamOptions]:
    features, labels = problem()
    search = BeamOptions(beam=2, cluster_weight=0.7, label_power=3)
    options = RankerOptions(negatives=negatives, n_recalled=3)  # type: ignore[arg-type]
    return fit_tree(
        Rows.of(features), labels, INDEX, matcher=SolverOptions(), ranker=options, search=search, seed=5, run=ONE
    ), search


def by_matcher(tree: LinearTree, texts: sp.csr_matrix, b: int, search: BeamOptions) -> tuple[Any, Any]:
    root = np.zeros((texts.shape[0], 1), np.int32), np.zeros((texts.shape[0], 1), np.float32)
    return tree.layers[0].best(Rows.of(texts), *root, b, 1.0, search.cluster_power)


@pytest.mark.parametrize("negatives", ["cluster", "matcher", "all"])
def test_below_the_same_clusters_it_is_the_ranker_of_a_linear_tree(negatives: str) -> None:
    tree, search = by_tree(negatives)
    features, labels = problem()
    options = RankerOptions(negatives=negatives, n_recalled=3)  # type: ignore[arg-type]
    clusters = by_matcher(tree, features, 3, search)[0] if negatives == "matcher" else None
    own = fit_ranker(Rows.of(features), labels, INDEX, clusters, options, seed=5, run=ONE)
    assert same_bits(own, tree.layers[-1])
    new = problem(seed=1)[0]
    score = ScoreOptions(cluster_weight=search.cluster_weight, label_power=search.label_power)
    found = rank(own, Rows.of(new), *by_matcher(tree, new, 2, search), 7, score, run=ONE)
    expected = tree.predict(Rows.of(new), 7, search, ONE)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


# who trains it


def test_recalled_clusters_are_joined_with_those_of_the_texts_own_labels() -> None:
    """A matcher that recalls nothing, or only what is right, adds nothing; whatever else it recalls does."""
    labels = problem()[1]
    own = fit(negatives="cluster")
    nothing = np.full((N_TEXTS, 3), -1, np.int32)
    right = np.full((N_TEXTS, N_CLUSTERS), -1, np.int32)
    for text in range(N_TEXTS):
        clusters = np.unique(INDEX.parents[-1][labels[text]])
        right[text, : len(clusters)] = clusters
    for clusters in (nothing, right, right[:, :0]):
        assert same_bits(fit(clusters=clusters), own)
    everywhere = np.tile(np.arange(N_CLUSTERS, dtype=np.int32), (N_TEXTS, 1))
    assert same_bits(fit(clusters=everywhere), fit(negatives="all"))
    assert not same_bits(fit(clusters=recalled()[0]), own)


def test_recall_is_not_looked_at_where_it_is_not_wanted() -> None:
    wrong = np.full((N_TEXTS, 1), 99, np.int32)
    assert same_bits(fit(clusters=wrong, negatives="cluster"), fit(negatives="cluster"))
    assert same_bits(fit(clusters=wrong, negatives="all"), fit(negatives="all"))


def test_one_cluster_is_plain_one_against_all_on_texts_with_labels() -> None:
    features, labels = problem()
    root = LabelIndex((np.zeros(1, np.int32), np.zeros(N_LABELS, np.int32)))
    has_labels = np.flatnonzero(labels.labels_per_text())
    plain = fit(LabelIndex.flat(N_LABELS), given=(features[has_labels], labels.take(has_labels)), cost_decay=0.15)
    assert same_bits(fit(root, negatives="cluster", cost_decay=0.15), plain)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_one_label_a_cluster_gives_rankers_that_say_yes(dense_weights: DenseWeights, loss: str) -> None:
    features, labels = problem()
    alone = LabelIndex((np.zeros(N_LABELS, np.int32), LABELS.astype(np.int32)))
    weights, bias = dense_weights(fit(alone, negatives="cluster", loss=loss, threshold=0.0), N_FEATURES)
    margins = features @ weights + bias
    assert np.isfinite(margins).all()
    for text in range(N_TEXTS):
        assert (margins[text, labels[text]] > 0).all()
    own = rank(
        fit(alone, negatives="cluster", loss=loss),
        Rows.of(features),
        np.tile(LABELS.astype(np.int32), (N_TEXTS, 1)),
        np.zeros((N_TEXTS, N_LABELS), np.float32),
        N_LABELS,
        ScoreOptions(),
        run=ONE,
    )
    assert (np.sort(own.labels, axis=1) == LABELS).all()


def test_few_clusters_are_not_all_recalled_in_training() -> None:
    one_each = LabelMatrix.from_lists([[0], [1]], 2)
    counts = {n: RankerOptions(n_recalled=50).n_recalled_of(n, one_each) for n in (4, 40, 100, 1000)}
    assert counts == {4: 8, 40: 10, 100: 25, 1000: 50}
    assert RankerOptions(n_recalled=3).n_recalled_of(1000, one_each) == 3


def test_texts_of_many_labels_are_brought_to_more_clusters() -> None:
    many = LabelMatrix.from_lists([range(20), range(18)], 40)
    counts = {n: RankerOptions(n_recalled=50).n_recalled_of(n, many) for n in (4, 30, 61, 1000)}
    assert counts == {4: 8, 30: 30, 61: 38, 1000: 50}
    assert RankerOptions(n_recalled=3).n_recalled_of(61, many) == 3


def test_any_number_of_threads_gives_the_same_ranker() -> None:
    features, labels = problem()
    given = Rows.of(features), labels, INDEX, recalled()[0], RankerOptions()
    assert same_bits(*(fit_ranker(*given, run=Run(LocalEngine(n))) for n in (1, 3)))


# ranking


@settings(max_examples=40)
@given(
    st.integers(0, 9999),
    st.integers(0, N_CLUSTERS),
    st.integers(0, 40),
    st.sampled_from([0.0, 0.4, 1.0]),
    st.sampled_from([0, 1, 3, 4]),
    st.sampled_from(["score", "margin"]),
)
def test_scores_are_those_of_plain_dense_arithmetic(
    dense_weights: DenseWeights, seed: int, b: int, n_texts: int, weight: float, power: int, order: Any
) -> None:
    texts = problem(seed=1)[0][:n_texts]
    clusters, scores = recalled(seed, b, n_texts)
    weights, bias = dense_weights(ranker(), N_FEATURES)
    margins = texts @ weights + bias
    above = np.full((n_texts, N_CLUSTERS), -np.inf)
    rows, columns = np.nonzero(clusters >= 0)
    above[rows, clusters[rows, columns]] = scores[rows, columns]
    above = above[:, INDEX.parents[-1]]  # (n_texts, n_labels)
    reached = np.isfinite(above)
    if order == "margin":
        expected = np.where(reached, -np.logaddexp(0, -margins), -np.inf)
    else:
        expected = np.where(reached, weight * np.where(reached, above, 0) + log_score(margins, power), -np.inf)
    options = ScoreOptions(cluster_weight=weight, label_power=power, order=order)
    found = rank(ranker(), Rows.of(texts), clusters, scores, N_LABELS, options, run=ONE)
    np.testing.assert_array_equal((found.labels >= 0).sum(axis=1), reached.sum(axis=1))
    for row in range(n_texts):
        kept = found.labels[row][found.labels[row] >= 0]
        np.testing.assert_array_equal(np.sort(kept), np.flatnonzero(reached[row]))
        np.testing.assert_allclose(found.scores[row][: len(kept)], np.exp(expected[row, kept]), rtol=1e-3, atol=1e-30)
        assert (np.diff(expected[row, kept]) < 1e-4).all()
    assert (found.scores[found.labels == NO_LABEL] == -np.inf).all()


def test_scores_lie_between_zero_and_one_and_below_those_of_their_cluster() -> None:
    texts = Rows.of(problem(seed=1)[0])
    clusters, scores = recalled(3)
    found = rank(ranker(), texts, clusters, scores, N_LABELS, ScoreOptions(), run=ONE)
    assert (found.labels[0] == NO_LABEL).all()  # nothing was recalled
    for row in range(N_TEXTS):
        kept = found.labels[row][found.labels[row] >= 0]
        above = dict(zip(clusters[row].tolist(), np.exp(scores[row]).tolist(), strict=True))
        own = found.scores[row][: len(kept)]
        assert len(set(kept.tolist())) == len(kept) <= 2 * INDEX.sizes().max()
        assert ((own >= 0) & (own <= 1)).all()
        assert (own <= np.array([above[int(c)] for c in INDEX.parents[-1][kept]]) * (1 + 1e-6)).all()


def test_what_the_clusters_miss_no_ranker_can_find() -> None:
    """All labels of recalled clusters come, no others do: the recall of clusters bounds that of labels from above."""
    features, labels = problem()
    clusters, scores = recalled(b=1)
    hits, reachable = {}, 0
    for k in (1, 3, N_LABELS):
        found = rank(ranker(), Rows.of(features), clusters, scores, k, ScoreOptions(), run=ONE)
        hits[k] = sum(len(set(found.labels[row].tolist()) & set(labels[row].tolist())) for row in range(N_TEXTS))
    for row in range(N_TEXTS):
        reachable += int(np.isin(INDEX.parents[-1][labels[row]], clusters[row]).sum())
    assert 0 < hits[1] < hits[3] <= hits[N_LABELS] == reachable < len(labels.indices)


def one_feature(margins: Any, index: LabelIndex) -> Layer:
    """A ranker that gives a text with the value 1 of the only feature these margins."""
    level = index.levels()[-1]
    by_place = np.asarray(margins, np.float32)[level.children]
    none = np.empty(0, np.int32), np.empty(0, np.uint16), np.empty(0, np.float32)
    parts = [
        chunk_of(ChildWeights(*none, by_place[start:stop]))
        for start, stop in zip(level.child_ptr[:-1], level.child_ptr[1:], strict=True)
    ]
    return layer_of(level, {key: np.concatenate([part[key] for part in parts]) for key in parts[0]})


@pytest.mark.parametrize("cluster_score", [0.0, -0.5, -0.9])
@pytest.mark.parametrize("order", ["score", "margin"])
def test_labels_that_are_all_sure_keep_the_order_of_their_margins(cluster_score: float, order: Any) -> None:
    """exp(−max(0, 1 − m)³) is 1 for every margin of 1 and more (docs/methods/xbert.md#ties)."""
    margins = np.random.default_rng(0).permutation(1 + 0.25 * LABELS)
    own = one_feature(margins, LabelIndex((np.zeros(1, np.int32), np.zeros(N_LABELS, np.int32))))
    text = Rows.of(sp.csr_matrix(np.ones((1, 1), np.float32)))
    cluster = np.zeros((1, 1), np.int32), np.full((1, 1), cluster_score, np.float32)
    found = rank(own, text, *cluster, N_LABELS, ScoreOptions(order=order), run=ONE)
    sure = N_LABELS if order == "margin" or cluster_score == 0 else 12  # above 3.75 they tie as float32
    assert sorted(found.labels[0].tolist()) == LABELS.tolist()
    assert found.labels[0, -sure:].tolist() == np.argsort(-margins)[-sure:].tolist()


def test_by_margin_the_clusters_scores_do_not_count_and_sigmoids_are_the_scores() -> None:
    margins = np.random.default_rng(0).normal(size=N_LABELS).astype(np.float32)
    text = Rows.of(sp.csr_matrix(np.ones((1, 1), np.float32)))
    clusters = np.array([[2, 0, 3, 1]], np.int32)
    scores = np.array([[-9.0, -3.0, -0.1, 0.0]], np.float32)
    own = one_feature(margins, INDEX)
    found = rank(own, text, clusters, scores, N_LABELS, ScoreOptions(order="margin"), run=ONE)
    assert found.labels[0].tolist() == np.argsort(-margins).tolist()
    np.testing.assert_allclose(found.scores[0], 1 / (1 + np.exp(-np.sort(margins)[::-1])), rtol=1e-5)
    product = rank(own, text, clusters, scores, N_LABELS, ScoreOptions(), run=ONE)
    assert INDEX.parents[-1][product.labels[0, 0]] == 1 != INDEX.parents[-1][found.labels[0, 0]]


def test_batches_and_threads_do_not_change_the_ranking() -> None:
    texts = Rows.of(problem(seed=1)[0])
    clusters, scores = recalled(3)
    whole = rank(ranker(), texts, clusters, scores, 5, ScoreOptions(), run=ONE)
    for n_threads in (1, 3):
        run = Run(LocalEngine(n_threads))
        found = rank(ranker(), texts, clusters, scores, 5, ScoreOptions(), run=run, most=7)
        np.testing.assert_array_equal(found.labels, whole.labels)
        np.testing.assert_array_equal(found.scores, whole.scores)


# what is refused


def test_recall_that_is_missing_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"'matcher' needs the clusters.*or use ranker\.negatives 'cluster' or 'all'"):
        fit()
    assert fit(LabelIndex.flat(N_LABELS)).n_weights  # there is nothing to recall


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (np.zeros((N_TEXTS - 1, 2), np.int32), r"shape \(60, b\), got int32 \(59, 2\)"),
        (np.zeros(N_TEXTS, np.int32), r"shape \(60, b\), got int32 \(60,\)"),
        (np.zeros((N_TEXTS, 1)), r"whole numbers.* got float64"),
        (np.full((N_TEXTS, 1), N_CLUSTERS), "in 0 to 3, or be -1, got -1 to 4"),
        (np.full((N_TEXTS, 1), -2), "got -2 to -1"),
        (np.array([[1, -1, -1], [0, 2, 0]] * (N_TEXTS // 2)), "must be distinct, text 1 has one twice"),
    ],
)
def test_clusters_that_cannot_be_are_refused(clusters: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(clusters=clusters)
    with pytest.raises(DataError, match=message):
        rank(ranker(), Rows.of(problem()[0]), clusters, np.zeros(clusters.shape), 5, ScoreOptions(), run=ONE)


@pytest.mark.parametrize("score", [0.1, np.nan, -np.inf])
def test_scores_that_are_no_logs_are_refused(score: float) -> None:
    clusters, scores = recalled()
    scores[clusters >= 0] = score
    with pytest.raises(DataError, match="numbers of at most 0"):
        rank(ranker(), Rows.of(problem()[0]), clusters, scores, 5, ScoreOptions(), run=ONE)


def test_other_things_that_do_not_fit_together_are_refused() -> None:
    features, labels = problem()
    clusters, scores = recalled()
    with pytest.raises(DataError, match=r"shape of the clusters, \(60, 2\), got \(60, 1\)"):
        rank(ranker(), Rows.of(features), clusters, scores[:, :1], 5, ScoreOptions(), run=ONE)
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        rank(ranker(), Rows.of(features), clusters, scores, 0, ScoreOptions(), run=ONE)
    with pytest.raises(DataError, match="columns that the ranker was trained on, at least 40, got 20"):
        rank(ranker(), Rows.of(features[:, :20]), clusters, scores, 5, ScoreOptions(), run=ONE)
    with pytest.raises(DataError, match="labels must be those of the 60 texts, got 59 rows"):
        fit(clusters=clusters, given=(features, labels.take(np.arange(59))))
