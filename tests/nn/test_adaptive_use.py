"""The adaptive head as it is used: the best labels without computing every tail, and what the trainer sees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from longtail.errors import ConfigError
from longtail.labels.buckets import Buckets
from longtail.nn.batch import Targets
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions, ratios
from longtail.nn.heads.base import HeadInputs
from longtail.types import LabelMatrix

WIDTH = 12
tails = st.sampled_from(["linear", "normed"])


def buckets_of(sizes: Sequence[int]) -> Buckets:
    return Buckets(np.arange(sum(sizes))[::-1].copy(), np.array([0, *accumulate(sizes)]))


def head_of(sizes: Sequence[int], seed: int = 0, **options: Any) -> Adaptive:
    torch.manual_seed(seed)
    return Adaptive(WIDTH, buckets_of(sizes), AdaptiveOptions.of({"bottleneck": 16, "dropout": 0.0, **options}))


def targets_of(rows: Sequence[Sequence[int]], n_labels: int) -> Targets:
    return Targets.of(LabelMatrix.from_lists(rows, n_labels), np.arange(len(rows)))


def vectors_of(n_texts: int, seed: int = 0) -> Tensor:
    return torch.randn(n_texts, WIDTH, generator=torch.Generator().manual_seed(seed))


def rows_seen(head: Adaptive) -> list[list[int]]:
    """For each tail, how many texts each of its calls is given from now on."""
    seen: list[list[int]] = [[] for _ in head.tails]
    for tail, own in zip(head.tails, seen, strict=True):
        tail.register_forward_hook(lambda _, given, __, own=own: own.append(len(given[0])))
    return seen


@settings(max_examples=60)
@given(st.data())
def test_pruned_best_labels_are_those_of_all_scores(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    seed, n_texts = data.draw(st.integers(0, 1000)), data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, sum(sizes)))
    head = head_of(sizes, seed, head_in_root=data.draw(st.booleans()), tails=data.draw(tails)).double()
    with torch.no_grad():
        head.root.weight *= data.draw(st.sampled_from([1, 5, 20]))  # shuts some gates
    vectors = vectors_of(n_texts, seed).double()
    scores, places = head.top_k(HeadInputs(vectors), k)
    best, at = head.log_scores(vectors).topk(k)
    assert places.dtype == torch.int64
    assert places.tolist() == at.tolist()
    torch.testing.assert_close(scores.log(), best, rtol=1e-9, atol=1e-12)
    assert (scores.diff(dim=1) <= 0).all()


def test_a_tail_is_computed_for_texts_whose_gate_beats_their_kth_label_only() -> None:
    head, vectors = head_of([5, 6]), vectors_of(40)
    with torch.no_grad():
        head.root.weight *= 8
        scores = head.log_scores(vectors)
        gates = F.logsigmoid(torch.tanh(head.bottleneck(vectors)) @ head.root.weight[5:].T)[:, 0]
        wanted = int((gates > scores[:, :5].topk(3).values[:, -1]).sum())
    seen = rows_seen(head)
    found = head.top_k(HeadInputs(vectors), 3)[1]
    assert 0 < wanted < 40
    assert seen == [[wanted]]
    assert found.tolist() == scores.topk(3).indices.tolist()


def test_a_shut_tail_is_not_computed_unless_labels_are_wanting() -> None:
    head, vectors = head_of([4, 3, 5], activation="none"), vectors_of(6)
    with torch.no_grad():
        head.bottleneck.bias.fill_(1e3)
        head.root.weight[4:] = -1
    seen = rows_seen(head)
    assert (head.top_k(HeadInputs(vectors), 4)[1] < 4).all()
    assert seen == [[], []]
    scores, places = head.top_k(HeadInputs(vectors), 12)
    assert seen == [[6], [6]]
    assert [sorted(row) for row in places.tolist()] == [list(range(12))] * 6
    assert (scores[:, 4:] == 0).all()


def test_scores_that_are_rounded_to_one_are_still_in_order() -> None:
    head = head_of([4, 2], activation="none")
    with torch.no_grad():
        head.bottleneck.weight.zero_()
        head.bottleneck.bias.fill_(1)
        head.root.weight.copy_(torch.tensor([[20.0], [40.0], [30.0], [10.0], [50.0]]).expand(5, 16))
        head.get_parameter("tails.0.labels.weight").zero_()
    scores, places = head.top_k(HeadInputs(vectors_of(1)), 4)
    assert places.tolist() == [[1, 2, 0, 3]]
    assert (scores == 1).all()


@pytest.mark.parametrize("n_labels", [1, 2])
def test_a_handful_of_labels_is_enough(n_labels: int) -> None:
    head = head_of([1] * n_labels)
    assert torch.isfinite(head.loss(HeadInputs(vectors_of(2)), targets_of([[0], [n_labels - 1]], n_labels)))
    assert sorted(head.top_k(HeadInputs(vectors_of(1)), n_labels)[1][0].tolist()) == list(range(n_labels))


def test_autocast_changes_nothing_here() -> None:
    head, vectors = head_of([3, 4, 5]), vectors_of(3)
    targets = targets_of([[0, 3, 8], [4], [1, 11]], 12)
    plain, best = head.loss(HeadInputs(vectors), targets), head.top_k(HeadInputs(vectors), 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert head.loss(HeadInputs(vectors), targets).item() == plain.item()
        assert torch.equal(head.top_k(HeadInputs(vectors), 5)[0], best[0])
        half = vectors.bfloat16().requires_grad_()
        loss = head.loss(HeadInputs(half), targets)
    assert loss.dtype == torch.float32
    loss.backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.bfloat16


def test_dropout_is_there_in_training_and_gone_in_use() -> None:
    head, vectors = head_of([3, 4], dropout=0.5), vectors_of(4)
    head.train()
    assert not torch.equal(head.log_scores(vectors), head.log_scores(vectors))
    head.eval()
    assert torch.equal(head.log_scores(vectors), head.log_scores(vectors))


def test_the_bottleneck_has_a_learning_rate_of_its_own() -> None:
    head = head_of([3, 4])
    groups = {name: head.group_of(name) for name, _ in head.named_parameters()}
    assert {name for name, group in groups.items() if group == "bottleneck"} == {"bottleneck.weight", "bottleneck.bias"}
    assert set(groups.values()) == {"bottleneck", "head"}


@pytest.mark.parametrize("mode", [{}, {"tails": "linear"}, {"head_in_root": False}], ids=str)
def test_the_state_carries_all_that_was_learnt(mode: dict[str, Any]) -> None:
    head, other, vectors = head_of([3, 4, 5], 0, **mode), head_of([3, 4, 5], 1, **mode), vectors_of(4)
    assert not torch.equal(head.top_k(HeadInputs(vectors), 5)[0], other.top_k(HeadInputs(vectors), 5)[0])
    other.load_state_dict(head.state_dict())
    for mine, theirs in zip(head.top_k(HeadInputs(vectors), 5), other.top_k(HeadInputs(vectors), 5), strict=True):
        assert torch.equal(mine, theirs)


def test_the_bottleneck_is_as_wide_as_the_encoder_unless_told() -> None:
    assert Adaptive(24, buckets_of([3, 4]), AdaptiveOptions()).root.in_features == 24


def test_a_bottleneck_too_narrow_for_its_tails_is_an_error_that_says_how_wide() -> None:
    with pytest.raises(ConfigError, match="at least 32 wide for 5 buckets and shrink=2, got 16"):
        head_of([1, 1, 1, 1, 1])
    head_of([1, 1, 1, 1, 1], tails="linear")


def test_ratios_are_those_of_the_cost_formula() -> None:
    quarter, options = [25] * 4, AdaptiveOptions()
    root, tails = 64 * (25 + 3), [32 * (64 + 25), 16 * (64 + 25), 8 * (64 + 25)]
    assert ratios(64, quarter, options)["compute_ratio"] == pytest.approx(6400 / (root + sum(tails)))
    rare = ratios(64, quarter, options, touch=[0.5, 0.25, 0.125])["compute_ratio"]
    assert rare == pytest.approx(6400 / (root + tails[0] / 2 + tails[1] / 4 + tails[2] / 8))
    leaves = ratios(64, quarter, AdaptiveOptions(head_in_root=False))["compute_ratio"]
    assert leaves == pytest.approx(6400 / (64 * 4 + 64 * (64 + 25) + sum(tails)))
    assert ratios(64, [100], options) == {"size_ratio": 1.0, "compute_ratio": 1.0}
    many = [250_000] * 4  # the matrices d × h_i hardly count
    assert ratios(64, many, options)["compute_ratio"] == pytest.approx(2.1333333, rel=1e-3)


def test_a_small_layer_in_buckets_is_not_said_to_be_cheaper_than_a_dense_one() -> None:
    n_labels = [250, 250]
    told = ratios(384, n_labels, AdaptiveOptions())["compute_ratio"]
    head = Adaptive(384, buckets_of(n_labels), AdaptiveOptions(tails="linear"))
    products = sum(matrix.numel() for matrix in [head.root.weight, *head.tails.parameters()])
    assert told == pytest.approx(384 * 500 / products)
    assert told < 1


def test_facts_are_plain_data() -> None:
    facts = head_of([3, 4, 5]).facts()
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["buckets"], facts["tail_widths"]) == ([3, 4, 5], [8, 4])


@pytest.mark.parametrize("prior", [True, False])
def test_what_a_split_saves_is_told_by_the_texts_that_touch_each_tail(prior: bool) -> None:
    head = head_of([3, 4, 5], prior=prior)
    dense, root, tails = 16 * 12, 16 * (3 + 2), [8 * (16 + 4), 4 * (16 + 5)]
    assert head.facts()["compute_ratio"] == pytest.approx(dense / (root + sum(tails)))
    head.init_from_labels(LabelMatrix.from_lists([[0], [1, 3], [2, 4, 5], [11]], 12))
    assert head.facts()["compute_ratio"] == pytest.approx(dense / (root + 0.5 * tails[0] + 0.25 * tails[1]))
