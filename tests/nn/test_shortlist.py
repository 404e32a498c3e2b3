"""The loss of the shortlist head against dense layers trained by autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.labels.index import LabelIndex
from longtail.nn.heads.base import HeadInputs, Step, positions
from longtail.nn.heads.shortlist import cluster_slots, n_weights
from longtail.types import LabelMatrix

from .problems import PLAIN, STEP, WIDTH, Problem, Reference, a_head, a_problem, chosen_by, close, index_of, trained


def test_slots_hold_the_labels_of_each_cluster_and_padding() -> None:
    slots = cluster_slots(index_of([1, 0, 1, 2, 1]))
    assert slots.tolist() == [[1, -1, -1], [0, 2, 4], [3, -1, -1]]
    assert positions(slots.reshape(-1), 5).tolist() == [3, 0, 4, 6, 5]


def test_a_cluster_without_labels_and_a_single_cluster_work() -> None:
    empty = LabelIndex((np.zeros(3, np.int32), np.array([0, 2, 2], np.int32)))
    for index in (empty, LabelIndex.flat(3)):
        problem = Problem(index, [[0, 1], [2]], torch.randn(2, WIDTH))
        head = a_head(index)
        assert all(bool(value.isfinite().all()) for value in trained(head, problem).values())
        scores, places = head.top_k(HeadInputs(problem.vectors), 3)
        assert all(sorted(head.order[row].tolist()) == [0, 1, 2] for row in places.numpy())
        assert bool(scores.isfinite().all())


def test_the_number_of_weights_is_that_of_the_published_models() -> None:  # docs/methods/lightxml.md#invariant-10
    bert = 109_482_240
    assert bert + n_weights(3840, 8192, 400, 670_091) == 410_520_512
    assert bert + n_weights(3840, 8192, 400, 667_317) == 409_410_912
    assert bert + n_weights(3840, 8192, 500, 501_008) == 393_372_212
    names = {"recall.weight", "recall.bias", "rank.weight", "rank.bias"}
    for head in (
        a_head(a_problem(0).index, table=PLAIN.model_copy(update={"prior": prior})) for prior in (True, False)
    ):
        n_padding = int((head.order < 0).sum()) * (4 if head.rank.bias is None else 5)
        assert head.facts()["n_weights"] == sum(p.numel() for p in head.parameters()) - n_padding
        wanted = names if head.rank.bias is not None else names - {"rank.bias"}  # none in the released code
        assert set(head.bulk) == wanted <= set(dict(head.named_parameters()))
    assert head.rank.bias is None


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 5),
    loss=st.sampled_from(["sum", "mean_over_slots", "mean"]),
    bottleneck=st.sampled_from(["sigmoid", "linear"]),
    compute=st.sampled_from(["masked", "gather"]),
    parts=st.sampled_from(["both", "recall", "rank"]),
    reduction=st.sampled_from(["sum", "mean"]),
)
def test_loss_and_gradients_are_those_of_dense_layers(
    seed: int, n: int, loss: Any, bottleneck: Any, compute: Any, parts: Any, reduction: Any
) -> None:  # docs/methods/lightxml.md#invariant-4 (n = K = 5), 7, 12
    problem = a_problem(seed)
    options = {"loss": loss, "bottleneck": bottleneck, "compute": compute, "parts": parts}
    table = PLAIN.model_copy(update={"reduction": reduction})
    head = a_head(problem.index, seed, table, n_clusters_ranked=n, **options)
    _, sets = chosen_by(head, problem)
    reference = Reference.of(head, problem)
    recall, rank, n_real = reference.losses(problem, sets)
    recall = recall * (1 if loss == "sum" else 1 / 5)
    rank = (
        rank
        * {"sum": torch.tensor(1.0), "mean_over_slots": torch.tensor(1 / (n * head.size)), "mean": 1 / n_real}[loss]
    )
    total = (recall * (parts != "rank") + rank * (parts != "recall")).mean()
    total.backward()

    found = trained(head, problem)
    assert found["loss"].item() == pytest.approx(total.item(), abs=1e-4)
    assert close(found["vectors"], reference.vectors.grad)
    # Rows learn from sums, the gradient of the loss times a constant; or from the loss itself.
    recall_sum = 1 if loss == "sum" or reduction == "mean" else 5
    rank_sum = 1 if reduction == "mean" else {"sum": 1, "mean_over_slots": n * head.size, "mean": n * 17 / 5}[loss]
    real = torch.from_numpy(head.order >= 0)
    assert close(found["recall.weight"], reference.recall.grad * recall_sum)
    assert close(found["recall.bias"], reference.bias.grad * recall_sum)
    assert close(found["rank.weight"][positions(head.order, 17)], reference.labels.grad * rank_sum)
    assert close(found["rank.bias"][positions(head.order, 17)], reference.label_bias.grad * rank_sum)
    assert bool((found["rank.weight"][~real] == 0).all())
    assert bool((found["rank.bias"][~real] == 0).all())
    if parts != "recall":
        assert close(found["weight"], reference.narrow.grad)
        assert close(found["bias"], reference.narrow_bias.grad)


def test_labels_and_clusters_begin_at_their_log_odds() -> None:
    problem = a_problem(5)
    head, places = a_head(problem.index), positions(a_head(problem.index).order, 17)
    head.init_from_labels(LabelMatrix.from_lists(problem.lists, 17).renumber(places, len(head.order)))
    of_labels = problem.dense().sum(0)
    of_clusters = torch.tensor([sum(cluster in row for row in problem.clusters) for cluster in range(5)])
    assert close(head.rank.bias[places], ((of_labels + 0.5) / 7).logit())
    assert close(head.recall.bias, ((of_clusters + 0.5) / 7).logit())


@pytest.mark.parametrize("compute", ["masked", "gather"])
def test_micro_batches_with_shares_make_one_batch(compute: str) -> None:
    problem = a_problem(5)
    whole, cut = (a_head(problem.index, n_clusters_ranked=2, compute=compute) for _ in range(2))
    targets = problem.targets(whole)
    value = whole.loss(HeadInputs(problem.vectors), targets, show=True)
    value.backward()
    for start, stop in [(0, 4), (4, 6)]:
        part = cut.loss(
            HeadInputs(problem.vectors[start:stop]), targets.part(start, stop), (stop - start) / 6, show=True
        )
        part.backward()
        value = value - part.detach()
    assert value.item() == pytest.approx(0, abs=1e-5)
    assert close(whole.bottleneck.weight.grad, cut.bottleneck.weight.grad)
    for head in (whole, cut):
        head.step(STEP)
    assert all(close(whole.bulk[name], cut.bulk[name]) for name in whole.bulk)


def test_the_rank_loss_does_not_train_the_recall() -> None:  # docs/methods/lightxml.md#invariant-7
    problem = a_problem(3)
    both, recall, rank = (trained(a_head(problem.index, parts=p), problem) for p in ("both", "recall", "rank"))
    assert torch.equal(both["recall.weight"], recall["recall.weight"])
    assert torch.equal(both["rank.weight"], rank["rank.weight"])
    for name in ("recall.weight", "recall.bias"):
        assert bool((rank[name] == 0).all())
    assert bool((recall["rank.weight"] == 0).all())
    assert close(both["vectors"], recall["vectors"] + rank["vectors"])


def test_only_active_parts_are_updated() -> None:
    problem = a_problem(3)
    head = a_head(problem.index, parts="recall")
    head.loss(HeadInputs(problem.vectors), problem.targets(head))
    head.step(Step({"head": 0.1}, decay=0.5))
    assert (head.recall.n_updates, head.rank.n_updates) == (1, 0)
    assert torch.equal(head.rank.weight, a_head(problem.index).rank.weight)


@pytest.mark.parametrize("compute", ["masked", "gather"])
def test_padding_changes_neither_loss_nor_scores(compute: str) -> None:  # docs/methods/lightxml.md#invariant-12
    narrow = a_problem(4, 20, 6)
    # One more cluster, wide and empty of texts, pads all others to its size.
    wide_parent = np.append(narrow.index.parents[-1], np.full(30, 6))
    wide = Problem(index_of(wide_parent), narrow.lists, narrow.vectors)
    results = []
    for problem in (narrow, wide):
        head = a_head(problem.index, n_clusters_ranked=2, compute=compute, parts="rank")
        place = positions(head.order, head.n_labels)[:20]
        generator = torch.Generator().manual_seed(1)
        head.recall.weight.data[:6] = torch.randn(6, WIDTH, generator=generator)
        head.recall.bias.data[:6], head.recall.bias.data[6:] = 0.0, -1e4
        head.rank.weight.data[place] = torch.randn(20, 4, generator=generator)
        head.rank.bias.data[place] = torch.randn(20, generator=generator)
        for parameter in head.bottleneck.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)
        scores, places = head.top_k(HeadInputs(problem.vectors), 20)
        labels = np.where(places >= 0, head.order[places], -1)
        results.append((head.n_clusters, trained(head, problem), scores, labels, place))
    (n_narrow, one, scores, labels, place), (n_wide, two, wide_scores, wide_labels, wide_place) = results
    assert close(one["loss"], two["loss"])
    assert close(one["vectors"], two["vectors"])
    assert np.array_equal(labels, wide_labels)
    assert torch.equal(scores, wide_scores)
    assert close(one["weight"], two["weight"])  # of the bottleneck
    ratio = (20 / n_narrow) / (50 / n_wide)  # rows learn from sums over a typical number of candidates
    assert close(one["rank.weight"][place], two["rank.weight"][wide_place] * ratio)


def test_what_is_in_the_padding_rows_changes_nothing() -> None:  # docs/methods/lightxml.md#invariant-12
    problem = a_problem(6)
    found = []
    for garbage in (0.0, 1e3):
        head = a_head(problem.index, n_clusters_ranked=3)
        head.rank.weight.data[torch.from_numpy(head.order < 0)] = garbage
        found.append((*head.top_k(HeadInputs(problem.vectors), 17), trained(head, problem)))
    (scores, places, one), (other_scores, other_places, two) = found
    assert torch.equal(scores, other_scores)
    assert torch.equal(places, other_places)
    assert all(torch.equal(one[name], two[name]) for name in one)
