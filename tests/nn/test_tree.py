"""The label tree beside one that is written down node by node."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs, Step
from longtail.nn.heads.tree import Tree, TreeHeadOptions
from longtail.nn.rows import Touches
from longtail.types import LabelMatrix

from .problems import a_deep_index

WIDTH, N_LABELS = 5, 13


def a_tree(seed: int, index: LabelIndex | None = None, **options: object) -> Tree:
    torch.manual_seed(seed)
    made = Tree(WIDTH, index or a_deep_index(seed), TreeHeadOptions.of(options))
    made.nodes.weight.data.normal_()
    return made


def a_batch(seed: int, n_texts: int = 6) -> tuple[Tensor, Targets]:
    rng = np.random.default_rng(seed)
    lists = [sorted(rng.choice(N_LABELS, rng.integers(0, 4), replace=False).tolist()) for _ in range(n_texts)]
    vectors = torch.from_numpy(rng.standard_normal((n_texts, WIDTH)).astype(np.float32))
    return vectors, Targets.of(LabelMatrix.from_lists(lists, N_LABELS), np.arange(n_texts))


def node_logits(head: Tree, vectors: Tensor, weight: Tensor) -> Tensor:
    return F.linear(vectors, weight[: head.tree.n, :-1], weight[: head.tree.n, -1])


def all_scores(head: Tree, vectors: Tensor) -> Tensor:
    """Log score of every label (B, n_labels), node by node."""
    each = F.logsigmoid(node_logits(head, vectors, head.nodes.weight))
    each = each.masked_fill(torch.from_numpy(head.tree.only), 0)
    return each[:, torch.from_numpy(head.tree.ways)].sum(2)


def all_losses(head: Tree, vectors: Tensor, targets: Targets, weight: Tensor) -> Tensor:
    """Sum over nodes of each text, (B,)."""
    tree, logits = head.tree, node_logits(head, vectors, weight)
    right = torch.zeros(len(vectors), tree.n + 1)
    right[:, tree.n] = 1
    for text, label in zip(targets.host_rows, targets.host_labels, strict=True):
        right[text, tree.ways[label]] = 1
    counted = right[:, tree.parent] * torch.from_numpy(~tree.only).float()
    each = F.binary_cross_entropy_with_logits(logits, right[:, : tree.n], reduction="none")
    return (each * counted).sum(1)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), share=st.sampled_from([1.0, 0.25]), at_once=st.sampled_from([1, 40, 1 << 22]))
def test_loss_and_gradients_are_those_of_autograd(seed: int, share: float, at_once: int) -> None:
    head, (vectors, targets) = a_tree(seed), a_batch(seed)
    leaf, weight = vectors.clone().requires_grad_(), head.nodes.weight.detach().clone().requires_grad_()
    expected = all_losses(head, leaf, targets, weight).mean() * share
    expected.backward()
    given_vectors = vectors.clone().requires_grad_()
    head.numbers_at_once = at_once
    loss = head.loss(HeadInputs(given_vectors), targets, share, show=True)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    assert torch.allclose(given_vectors.grad, leaf.grad, atol=1e-5)
    rows, gradient = Touches.joined(head.nodes.works).gradients()
    assert torch.allclose(torch.zeros_like(weight).index_copy_(0, rows, gradient), weight.grad, atol=1e-5)


def test_a_loss_that_is_not_shown_teaches_the_same_and_one_without_gradients_or_forgotten_nothing() -> None:
    head, (vectors, targets) = a_tree(3), a_batch(3)
    found = []
    for show in (True, False):
        given_vectors = vectors.clone().requires_grad_()
        head.loss(HeadInputs(given_vectors), targets, show=show).backward()
        found.append(given_vectors.grad)
    assert torch.equal(*found)
    head.forget()
    with torch.no_grad():
        head.loss(HeadInputs(vectors), targets)
    before = head.nodes.weight.clone()
    head.step(Step({"head": 1.0}))
    assert torch.equal(head.nodes.weight, before)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    k=st.integers(1, N_LABELS),
    beam=st.integers(1, 4),
    at_once=st.sampled_from([1, 1 << 22]),
)
def test_the_best_labels_are_those_of_all_leaves(seed: int, k: int, beam: int, at_once: int) -> None:
    head, vectors = a_tree(seed, beam=beam), a_batch(seed)[0]
    head.numbers_at_once = at_once
    scores, labels = head.top_k(HeadInputs(vectors), k)
    expected, best = all_scores(head, vectors).sort(dim=1, descending=True, stable=True)
    assert torch.equal(labels, best[:, :k])
    assert torch.allclose(scores, expected[:, :k].exp(), atol=1e-6)


def test_a_narrow_beam_alone_may_miss_the_best_label() -> None:
    """The likelier cluster holds no likely label."""
    index = LabelIndex((np.array([0, 0], np.int32), np.array([0, 0, 1, 1], np.int32)))
    missed = []
    for exact in (True, False):
        head = Tree(1, index, TreeHeadOptions(beam=1, exact=exact))
        head.nodes.weight.data[:, -1] = torch.tensor([1.0, 0.9, -3, -3, 3, -3, 0])
        missed.append(head.top_k(HeadInputs(torch.zeros(1, 1)), 1)[1].item() != 2)
    assert missed == [False, True]
    scores, labels = Tree(1, index, TreeHeadOptions(beam=1, exact=False)).top_k(HeadInputs(torch.zeros(1, 1)), 3)
    assert labels.tolist() == [[0, 1, -1]]
    assert scores.tolist() == [[0.25, 0.25, -torch.inf]]


def test_equal_scores_come_by_label() -> None:
    index = LabelIndex((np.array([0, 0, 0], np.int32), np.array([2, 1, 0, 2, 1, 0], np.int32)))
    assert Tree(WIDTH, index).top_k(HeadInputs(torch.ones(2, WIDTH)), 6)[1].tolist() == [[0, 1, 2, 3, 4, 5]] * 2


def test_a_tree_starts_from_how_often_nodes_are_right() -> None:
    index = LabelIndex((np.array([0, 0], np.int32), np.array([0, 0, 1, 1], np.int32)))
    head = Tree(WIDTH, index)
    head.init_from_labels(LabelMatrix.from_lists([[2], [2], [2, 3], [0]], 4))
    scores, labels = head.top_k(HeadInputs(torch.zeros(1, WIDTH)), 4)
    assert labels[0, 0] == 2
    assert scores[0, 0] == pytest.approx(3.5 / 5 * 3.5 / 4)
    plain = Tree(WIDTH, index, TreeHeadOptions(prior=False))
    plain.init_from_labels(LabelMatrix.from_lists([[2]], 4))
    assert not plain.nodes.weight.any()


def test_facts_count_nodes_and_weights() -> None:
    index = LabelIndex((np.array([0, 0], np.int32), np.array([0, 0, 1, 1], np.int32)))
    assert Tree(WIDTH, index).facts() == {"n_labels": 4, "n_nodes": 6, "n_levels": 2, "n_weights": 36}
