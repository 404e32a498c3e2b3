"""Which clusters are ranked, and ranking by gathered rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs, Step, positions
from longtail.nn.heads.candidates import CandidateClusters, gathered_gradient
from longtail.nn.heads.shortlist import cluster_targets
from longtail.nn.heads.table import LabelTableOptions
from longtail.types import LabelMatrix

from .problems import WIDTH, Problem, a_head, a_problem, chosen_by, close, index_of, trained

WAYS = ("masked", "gather")


@settings(max_examples=50)
@given(seed=st.integers(0, 1000), n=st.integers(1, 7))
def test_candidates_hold_all_positives_and_the_best_others_each_once(
    seed: int, n: int
) -> None:  # docs/methods/lightxml.md#invariant-2, 3, 8
    problem = a_problem(seed)
    head = a_head(problem.index, seed, n_clusters_ranked=n)
    chosen, sets = chosen_by(head, problem)
    logits = problem.vectors @ head.recall.weight.T + head.recall.bias
    sizes = problem.index.sizes()
    for text, (own, positive) in enumerate(zip(sets, problem.clusters, strict=True)):
        assert own >= positive
        assert len(own) == max(len(positive), min(n, 5))
        others = [cluster for cluster in logits[text].argsort(descending=True).tolist() if cluster not in positive]
        assert own == positive | set(others[: max(0, n - len(positive))])
        assert len(set(chosen.clusters[text].tolist())) == chosen.clusters.shape[1]
    assert chosen.n_real(head.sizes).tolist() == [int(sizes[sorted(own)].sum()) for own in sets]


def test_candidates_in_use_are_the_best_clusters_whatever_the_labels() -> None:  # docs/methods/lightxml.md#invariant-2
    problem = a_problem(1)
    head = a_head(problem.index, n_clusters_ranked=2)
    logits, clusters = head.recalled(problem.vectors)
    expected = (problem.vectors @ head.recall.weight.T + head.recall.bias).topk(2)
    assert torch.equal(clusters, expected.indices)
    assert close(logits, expected.values)
    _, places = head.top_k(HeadInputs(problem.vectors), 17)
    for own, row in zip(clusters.tolist(), places.tolist(), strict=True):
        assert {place // head.size for place in row if place >= 0} <= set(own)


def test_negatives_move_next_to_the_positives_as_the_recall_learns() -> None:  # docs/methods/lightxml.md#invariant-8
    rng = np.random.default_rng(0)
    n_topics, each = 6, 4  # clusters 4t to 4t + 3 are about topic t
    n_clusters = n_topics * each
    topic, own = rng.standard_normal((n_topics, WIDTH)), 0.3 * rng.standard_normal((n_clusters, WIDTH))
    cluster = np.repeat(np.arange(n_clusters), 4)
    vectors = torch.from_numpy((topic[cluster // each] + own[cluster]).astype(np.float32))
    labels = [[int(2 * c + rng.integers(2))] for c in cluster]
    problem = Problem(index_of(np.repeat(np.arange(n_clusters), 2)), labels, vectors)
    head = a_head(problem.index, table=LabelTableOptions(), n_clusters_ranked=each)

    def near() -> float:
        _, sets = chosen_by(head, problem)
        found = [other // each == c // each for c, chosen in zip(cluster, sets, strict=True) for other in chosen - {c}]
        return float(np.mean(found))

    before = near()
    for _ in range(150):
        head.loss(HeadInputs(problem.vectors), problem.targets(head))
        head.step(Step({"head": 0.05}))
    assert before < 0.4
    assert near() > 0.7


def test_clusters_of_targets_come_once_and_in_order() -> None:
    problem = a_problem(0)
    head = a_head(problem.index)
    found = cluster_targets(problem.targets(head), head.size, torch.device("cpu"))
    assert (np.diff(found.host_labels) >= 0).all()
    pairs = list(zip(found.host_rows.tolist(), found.host_labels.tolist(), strict=True))
    assert sorted(pairs) == [(text, cluster) for text, own in enumerate(problem.clusters) for cluster in sorted(own)]
    assert found.rows.tolist() == found.host_rows.tolist()
    assert found.labels.tolist() == found.host_labels.tolist()


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1000),
    n_clusters=st.integers(1, 12),
    n=st.integers(1, 12),
    chunk=st.integers(1, 60),
    at_once=st.sampled_from([1, 200, 1 << 25]),
    loss=st.sampled_from(["sum", "mean_over_slots", "mean"]),
)
def test_masked_and_gathered_ranking_agree(
    seed: int, n_clusters: int, n: int, chunk: int, at_once: int, loss: Any
) -> None:
    problem = a_problem(seed, 30, n_clusters, 5)
    table = LabelTableOptions(optimizer="sgd", momentum=0.0, chunk=chunk)
    heads = [a_head(problem.index, seed, table, n_clusters_ranked=n, compute=way, loss=loss) for way in WAYS]
    for head in heads:
        head.rank.numbers_at_once = at_once
    masked, gathered = (trained(head, problem) for head in heads)
    assert masked.keys() == gathered.keys()
    for name, value in masked.items():
        assert close(value, gathered[name]), name


def test_both_ways_agree_over_several_steps_of_adam() -> None:
    problems = [a_problem(seed, 40, 11, 5) for seed in range(4)]
    index, heads = problems[0].index, []
    for way in WAYS:
        head = a_head(index, table=LabelTableOptions(chunk=8), n_clusters_ranked=3, compute=way)
        for problem in problems:
            head.loss(HeadInputs(problem.vectors), Problem(index, problem.lists, problem.vectors).targets(head))
            head.step(Step({"head": 0.01}, decay=0.1))
        heads.append(head)
    place = positions(heads[0].order, 40)
    assert torch.allclose(heads[0].rank.weight[place], heads[1].rank.weight[place], atol=1e-4)
    assert torch.equal(heads[0].recall.weight, heads[1].recall.weight)


def test_gathering_is_chosen_where_few_clusters_are_ranked() -> None:
    index = index_of(np.arange(41))
    ways = {}
    for n in (2, 3):
        head = a_head(index, n_clusters_ranked=n)
        head.loss(HeadInputs(torch.randn(1, WIDTH)), Problem(index, [[0]], torch.zeros(1, WIDTH)).targets(head))
        ways[n] = type(head.works["rank"][0]).__name__
    assert ways == {2: "Gathered", 3: "Work"}


def test_the_order_of_candidates_changes_nothing() -> None:  # docs/methods/lightxml.md#invariant-6
    problem = a_problem(2)
    head = a_head(problem.index, n_clusters_ranked=3)
    targets = problem.targets(head)
    chosen, _ = chosen_by(head, problem)
    inner = head.bottleneck(problem.vectors).detach()
    gradient, value, _ = gathered_gradient(head.rank, inner, targets, chosen, show=True)
    order = torch.randperm(chosen.clusters.shape[1])
    valid = None if chosen.valid is None else chosen.valid[:, order]
    moved = CandidateClusters(chosen.clusters[:, order], valid)
    other_gradient, other, _ = gathered_gradient(head.rank, inner, targets, moved, show=True)
    assert close(value, other)
    assert close(gradient, other_gradient)


def test_static_candidates_are_those_of_each_text_and_its_positives() -> None:
    problem = a_problem(7)
    head = a_head(problem.index, negatives="static", parts="rank")
    fixed = np.array([[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 2]], np.int32)
    head.fix_candidates(fixed)
    _, sets = chosen_by(head, problem)
    for own, given_, positive in zip(sets, fixed.tolist(), problem.clusters, strict=True):
        others = [cluster for cluster in given_ if cluster not in positive]
        assert own == positive | set(others[: max(0, 2 - len(positive))])
    reordered = Targets.of(LabelMatrix.from_lists([[]] * 6, len(head.order)), np.array([3, 1]))
    chosen = head.choose(problem.vectors[:2], cluster_targets(reordered, head.size, torch.device("cpu")))
    assert chosen.clusters.tolist() == [[1, 2], [2, 3]]


def test_static_candidates_do_not_follow_the_recall() -> None:
    problem = a_problem(8)
    results = []
    for seed in (0, 1):
        head = a_head(problem.index, negatives="static", parts="rank")
        head.recall.weight.data = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(seed))
        head.fix_candidates(np.tile(np.arange(3), (6, 1)))
        results.append(trained(head, problem))
    assert torch.equal(results[0]["loss"], results[1]["loss"])
    assert torch.equal(results[0]["rank.weight"], results[1]["rank.weight"])


def test_static_candidates_can_come_from_the_recall() -> None:
    problem = a_problem(9)
    dynamic, static = (
        a_head(problem.index, n_clusters_ranked=2, parts="rank", negatives=kind) for kind in ("dynamic", "static")
    )
    static.fix_candidates(dynamic.recalled(problem.vectors)[1].numpy())
    assert chosen_by(dynamic, problem)[1] == chosen_by(static, problem)[1]


def test_wrong_or_missing_static_candidates_are_told() -> None:
    problem = a_problem(9)
    head = a_head(problem.index, negatives="static")
    with pytest.raises(ConfigError, match="fix_candidates"):
        head.loss(HeadInputs(problem.vectors), problem.targets(head))
    with pytest.raises(DataError, match="0 to 4"):
        head.fix_candidates(np.array([[0, 5]]))
    with pytest.raises(DataError, match="twice"):
        head.fix_candidates(np.array([[0, 1], [3, 3]]))
    with torch.no_grad():  # texts outside training are not among the fixed ones
        assert head.loss(HeadInputs(problem.vectors), problem.targets(head), show=True).isfinite()
