from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs, Step
from longtail.nn.heads.dense import Dense, hinge_score, top_by_blocks
from longtail.nn.heads.table import LabelTableOptions
from longtail.types import LabelMatrix

TEXTS = [[0, 3], [], [3, 5, 6], [1]]


def targets() -> Targets:
    return Targets.of(LabelMatrix.from_lists(TEXTS, 7), np.arange(4))


def vectors_of(seed: int, n: int = 4, width: int = 5) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


def a_head(chunk: int = 3, reduction: Any = "sum", **more: object) -> Dense:
    torch.manual_seed(0)
    table = LabelTableOptions(chunk=chunk, reduction=reduction, optimizer="sgd", momentum=0.0)
    return Dense(5, 7, table, **more)


@pytest.mark.parametrize("share", [1.0, 0.25])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_is_the_mean_over_texts_of_the_sum_or_mean_over_labels(reduction: Any, share: float) -> None:
    head, vectors = a_head(reduction=reduction), vectors_of(1).requires_grad_()
    loss = head.loss(HeadInputs(vectors), targets(), share, show=True)
    leaf, weight = vectors.detach().clone().requires_grad_(), head.table.weight.clone().requires_grad_()
    dense = F.binary_cross_entropy_with_logits(leaf @ weight.T, targets().dense(7), reduction=reduction) * share
    dense = dense if reduction == "mean" else dense / 4
    dense.backward()
    loss.backward()
    assert loss.item() == pytest.approx(dense.item(), abs=1e-5)
    assert torch.allclose(vectors.grad, leaf.grad, atol=1e-6)
    head.step(Step({"head": 1.0}))
    assert torch.allclose(weight.detach() - head.table.weight, weight.grad, atol=1e-6)


@pytest.mark.parametrize("chunk", [2, 3, 7])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_a_softmax_has_a_texts_labels_as_targets_in_equal_parts(chunk: int, share: float) -> None:
    head, vectors = a_head(chunk, loss="softmax"), vectors_of(1).requires_grad_()
    head.table.bias.data.normal_()
    loss = head.loss(HeadInputs(vectors), targets(), share, show=True)
    leaf, weight = vectors.detach().clone().requires_grad_(), head.table.weight.clone().requires_grad_()
    bias, aims = head.table.bias.detach().clone().requires_grad_(), targets().dense(7)
    aims /= aims.sum(1, keepdim=True).clamp(min=1)  # the text without labels has none
    dense = F.cross_entropy(leaf @ weight.T + bias, aims, reduction="sum") / 4 * share
    dense.backward()
    loss.backward()
    assert loss.item() == pytest.approx(dense.item(), abs=1e-5)
    assert torch.allclose(vectors.grad, leaf.grad, atol=1e-6)
    assert not vectors.grad[1].any()
    before = head.table.bias.clone()
    head.step(Step({"head": 1.0}))
    assert torch.allclose(weight.detach() - head.table.weight, weight.grad, atol=1e-6)
    assert torch.allclose(before - head.table.bias, bias.grad, atol=1e-6)


@pytest.mark.parametrize("chunk", [2, 7])
def test_scores_of_a_softmax_are_shares_of_one(chunk: int) -> None:
    head = a_head(chunk, loss="softmax")
    scores, places = head.top_k(HeadInputs(vectors_of(5)), 7)
    expected = (vectors_of(5) @ head.table.weight.T).softmax(1)
    assert torch.allclose(scores, expected.gather(1, places), atol=1e-6)
    assert torch.allclose(scores.sum(1), torch.ones(4))


def test_a_softmax_starts_from_the_shares_of_labels() -> None:
    head = a_head(loss="softmax")
    head.init_from_labels(LabelMatrix.from_lists([[0], [0, 1], [0, 2]], 7))
    scores, places = head.top_k(HeadInputs(torch.zeros(1, 5)), 7)
    assert places[0, 0] == 0
    assert scores[0, 0] / scores[0, 1] == pytest.approx(3.5 / 1.5, rel=1e-4)


def test_a_value_that_is_not_shown_has_the_same_gradient() -> None:
    found = []
    for show in (True, False):
        vectors = vectors_of(1).requires_grad_()
        a_head().loss(HeadInputs(vectors), targets(), show=show).backward()
        found.append(vectors.grad)
    assert torch.equal(*found)


def test_micro_batches_with_shares_make_one_batch() -> None:
    whole, cut, vectors, own = a_head(), a_head(), vectors_of(2), targets()
    value = whole.loss(HeadInputs(vectors), own, show=True)
    parts = [cut.loss(HeadInputs(vectors[a:b]), own.part(a, b), (b - a) / 4, show=True) for a, b in [(0, 1), (1, 4)]]
    assert sum(parts).item() == pytest.approx(value.item(), abs=1e-5)
    for head in (whole, cut):
        head.step(Step({"head": 0.5}))
    assert torch.allclose(whole.table.weight, cut.table.weight, atol=1e-6)


def test_a_loss_without_gradients_and_a_forgotten_one_teach_nothing() -> None:
    head = a_head()
    before = head.table.weight.clone()
    with torch.no_grad():
        head.loss(HeadInputs(vectors_of(1)), targets())
    head.loss(HeadInputs(vectors_of(1)), targets())
    head.forget()
    head.step(Step({"head": 1.0}))
    assert torch.equal(head.table.weight, before)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), n=st.integers(1, 40), chunk=st.integers(1, 50), data=st.data())
def test_the_best_labels_are_exact_and_equal_ones_come_by_label(
    seed: int, n: int, chunk: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, n))
    head = Dense(2, n, LabelTableOptions(chunk=chunk))
    generator = torch.Generator().manual_seed(seed)
    head.table.weight.data = torch.randint(-2, 3, (n, 2), generator=generator).float()  # many ties
    vectors = torch.randint(-2, 3, (3, 2), generator=generator).float()
    scores, labels = head.top_k(HeadInputs(vectors), k)
    logits = vectors @ head.table.weight.T
    for row in range(3):
        got = labels[row].tolist()
        assert len(set(got)) == k
        assert torch.equal(scores[row], logits[row, labels[row]].sigmoid())
        assert sorted(logits[row].tolist(), reverse=True)[:k] == logits[row, labels[row]].tolist()
        assert got == sorted(got, key=lambda label: (-float(logits[row, label]), label))


@settings(max_examples=60)
@given(seed=st.integers(0, 1000), n_blocks=st.integers(1, 12), block=st.integers(1, 7), data=st.data())
def test_the_best_by_blocks_are_the_best(seed: int, n_blocks: int, block: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n_blocks))
    n = n_blocks * block + data.draw(st.integers(0, block - 1))  # the last block may be longer
    logits = torch.randint(-9, 9, (3, n), generator=torch.Generator().manual_seed(seed)).float()
    values, places = top_by_blocks(logits, k, block)
    assert torch.equal(values, logits.topk(k).values)
    assert torch.equal(values, logits.gather(1, places))
    assert all(len(set(row)) == k for row in places.tolist())


def test_saturated_scores_are_still_ordered_by_logit() -> None:
    head = Dense(1, 5)
    head.table.weight.data = torch.tensor([[40.0], [60.0], [50.0], [90.0], [30.0]])
    scores, labels = head.top_k(HeadInputs(torch.ones(1, 1)), 3)
    assert labels.tolist() == [[3, 1, 2]]
    assert scores.tolist() == [[1.0, 1.0, 1.0]]


def test_labels_begin_at_their_log_odds() -> None:
    places = LabelMatrix.from_lists([[1]] * 50 + [[]] * 49, 2)
    head = Dense(3, 2)
    head.init_from_labels(places)
    scores, labels = head.top_k(HeadInputs(torch.zeros(1, 3)), 2)
    assert labels.tolist() == [[1, 0]]
    assert scores[0].tolist() == pytest.approx([0.505, 0.005], abs=1e-6)
    plain = Dense(3, 2, LabelTableOptions(prior=False))
    plain.init_from_labels(places)
    assert plain.top_k(HeadInputs(torch.zeros(1, 3)), 2)[0].tolist() == [[0.5, 0.5]]
    hinge = Dense(3, 2, loss="squared_hinge")
    hinge.init_from_labels(places)
    assert hinge.table.bias is not None
    assert hinge.table.bias.tolist() == [-1, -1]  # no loss for labels that a text has not


def test_hinge_scores_lie_between_0_and_1_in_the_order_of_margins() -> None:
    head = a_head(loss="squared_hinge")
    scores, labels = head.top_k(HeadInputs(vectors_of(3)), 7)
    margins = (vectors_of(3) @ head.table.weight.T).gather(1, labels)
    assert torch.allclose(scores, hinge_score(margins), atol=1e-6)
    assert bool(((scores >= 0) & (scores <= 1)).all())
    assert bool((margins.diff(dim=1) <= 0).all())
    assert hinge_score(torch.tensor([1.0, 5.0, 0.0])).tolist() == pytest.approx([1, 1, np.exp(-1)])


def test_the_bulk_is_named_like_the_parameters() -> None:
    head = a_head()
    assert set(head.bulk) == {"table.weight", "table.bias"} == set(dict(head.named_parameters()))
    assert head.tables() == {"table": head.table}


def test_losses_are_computed_in_the_type_of_autocast_and_scores_in_float32() -> None:
    head, vectors = a_head(), vectors_of(4)
    with torch.autocast("cpu", torch.bfloat16):
        scores, labels = head.top_k(HeadInputs(vectors), 7)
        loss = head.loss(HeadInputs(vectors.requires_grad_()), targets(), show=True)
    exact = (vectors.detach().bfloat16().float() @ head.table.weight.T).sigmoid()
    assert torch.allclose(scores, exact.gather(1, labels), atol=1e-6)
    assert scores.dtype == torch.float32
    assert head.works[0].vectors.dtype == torch.bfloat16
    loss.backward()
    assert vectors.grad is not None
    assert vectors.grad.dtype == torch.float32


@pytest.mark.parametrize("chunk", [2, 3, 7])
def test_votes_are_added_to_logits_in_training_and_in_use(chunk: int) -> None:
    given_votes = np.zeros((4, 7), np.float32)
    given_votes[0, [0, 6]], given_votes[2, 3], given_votes[3, 5] = (2.0, 1.5), 4.0, 50.0
    votes = Targets.votes(sp.csr_matrix(given_votes), np.arange(4))
    head, vectors = a_head(chunk), vectors_of(1).requires_grad_()
    loss = head.loss(HeadInputs(vectors, votes=votes), targets(), 1.0, show=True)
    leaf, weight = vectors.detach().clone().requires_grad_(), head.table.weight.clone().requires_grad_()
    logits = leaf @ weight.T + torch.from_numpy(given_votes)
    dense = F.binary_cross_entropy_with_logits(logits, targets().dense(7), reduction="sum") / 4
    dense.backward()
    loss.backward()
    assert loss.item() == pytest.approx(dense.item(), abs=1e-5)
    assert torch.allclose(vectors.grad, leaf.grad, atol=1e-6)
    expected = logits.detach().topk(3)
    scores, places = head.top_k(HeadInputs(vectors.detach(), votes=votes), 3)
    assert torch.equal(places, expected.indices)
    assert torch.allclose(scores, expected.values.sigmoid(), atol=1e-6)
    assert places[3, 0] == 5
    head.step(Step({"head": 1.0}))
    assert torch.allclose(weight.detach() - head.table.weight, weight.grad, atol=1e-6)
    part = votes.part(2, 4)
    assert part.values.tolist() == [4.0, 50.0] and part.host_rows.tolist() == [0, 1]
