from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.table import LabelTable, LabelTableOptions, Loss, Work
from longtail.types import LabelMatrix

LOSSES: list[Loss] = ["bce", "squared_hinge"]


def targets_of(rows: list[list[int]], n_labels: int) -> Targets:
    return Targets.of(LabelMatrix.from_lists(rows, n_labels), np.arange(len(rows)))


def a_batch(seed: int, n_texts: int, n_rows: int, width: int) -> tuple[Tensor, Targets]:
    rng = np.random.default_rng(seed)
    vectors = torch.from_numpy(rng.standard_normal((n_texts, width)).astype(np.float32))
    lists = [sorted(rng.choice(n_rows, rng.integers(0, min(4, n_rows + 1)), replace=False)) for _ in range(n_texts)]
    return vectors, targets_of([[int(label) for label in row] for row in lists], n_rows)


def table_of(n_rows: int, width: int, seed: int = 0, **more: Any) -> LabelTable:
    torch.manual_seed(seed)
    names = {"chunk", "optimizer", "momentum", "storage", "passes"}
    options = LabelTableOptions(**{name: value for name, value in more.items() if name in names})
    made = LabelTable(n_rows, width, options, **{name: value for name, value in more.items() if name not in names})
    if made.bias is not None:
        made.bias.data.normal_()
    return made


def dense_loss(loss: str, logits: Tensor, targets: Tensor, counted: Tensor | None = None) -> Tensor:
    """The sum over labels of each text, (B,), written down as in a textbook."""
    if loss == "bce":
        each = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    else:
        each = (1 - (2 * targets - 1) * logits).clamp(min=0) ** 2
    return (each if counted is None else each[:, :] * counted).sum(1)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    n_groups=st.integers(1, 9),
    group=st.integers(1, 4),
    chunk=st.integers(1, 40),
    loss=st.sampled_from(LOSSES),
    masked=st.booleans(),
)
def test_loss_and_gradients_are_those_of_autograd(
    seed: int, n_groups: int, group: int, chunk: int, loss: Loss, masked: bool
) -> None:
    n_rows, width = n_groups * group, 5
    vectors, targets = a_batch(seed, 6, n_rows, width)
    table = table_of(n_rows, width, seed, chunk=chunk, group=group, loss=loss, optimizer="sgd", momentum=0.0)
    allowed = torch.rand(6, n_groups) < 0.6 if masked else None
    weights = torch.rand(6) + 0.5

    leaf, weight = vectors.clone().requires_grad_(), table.weight.detach().clone().requires_grad_()
    bias = table.bias.detach().clone().requires_grad_()
    counted = None if allowed is None else allowed.repeat_interleave(group, 1).float()
    expected = dense_loss(loss, leaf @ weight.T + bias, targets.dense(n_rows), counted)
    (by_vector,) = torch.autograd.grad(expected.sum(), leaf, retain_graph=True)
    by_weight, by_bias = torch.autograd.grad((expected * weights).sum() / 6, [weight, bias])

    work = Work(vectors, targets, 6.0, weights, allowed)
    gradient, value = table.gradient(work, show=True)
    assert torch.allclose(gradient, by_vector, atol=1e-5)
    assert torch.allclose(value, expected.detach(), atol=1e-4)
    assert table.gradient(work, show=False)[1] is None
    table.update([work], rate=1.0)
    assert torch.allclose(weight.detach() - table.weight, by_weight, atol=1e-5)
    assert torch.allclose(bias.detach() - table.bias, by_bias, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("optimizer", "epsilon"), [("adam", 1e-8), ("adam", 0.1), ("sgd", 1e-8)])
def test_updates_are_those_of_torchs_optimisers(optimizer: str, epsilon: float, loss: Loss) -> None:
    decay = 0.3 if optimizer == "adam" else 0.0  # torch's SGD adds decay to the gradient, ours shrinks the weights
    table = table_of(11, 4, chunk=3, loss=loss, optimizer=optimizer, momentum=0.8)
    weight, bias = (nn_.detach().clone().requires_grad_() for nn_ in (table.weight, table.bias))
    groups = [{"params": [weight], "weight_decay": decay}, {"params": [bias], "weight_decay": 0.0}]
    reference = (
        torch.optim.AdamW(groups, lr=0.05, eps=epsilon)
        if optimizer == "adam"
        else torch.optim.SGD(groups, lr=0.05, momentum=0.8)
    )
    for step in range(6):
        vectors, targets = a_batch(step, 5, 11, 4)
        reference.zero_grad()
        dense_loss(loss, vectors @ weight.T + bias, targets.dense(11)).mean().backward()
        reference.step()
        table.update([Work(vectors, targets, 5.0)], rate=0.05, decay=decay, epsilon=epsilon)
    assert torch.allclose(table.weight, weight, atol=1e-5)
    assert torch.allclose(table.bias, bias, atol=1e-5)


def test_a_positive_far_above_zero_still_has_a_gradient_in_bfloat16() -> None:
    table = table_of(2, 1, bias=False, optimizer="sgd", momentum=0.0)
    table.weight.data = torch.tensor([[8.0], [-8.0]])
    work = Work(torch.ones(1, 1, dtype=torch.bfloat16), targets_of([[0]], 2), 1.0)
    before = table.weight.clone()
    table.update([work], rate=1.0)
    wanted = 1 / (1 + np.exp(8))  # 1 − σ(8) rounds to 0
    assert (table.weight - before).flatten().tolist() == pytest.approx([wanted, -wanted], rel=0.01)


def test_weights_shrink_by_decay_and_the_bias_does_not() -> None:
    for optimizer in ("adam", "sgd"):
        table = table_of(3, 4, optimizer=optimizer, loss="squared_hinge")
        table.bias.data.fill_(-2.0)  # beyond the margin: no gradient
        weight = table.weight.clone()
        table.update([Work(torch.zeros(1, 4), targets_of([[]], 3), 1.0)], rate=0.5, decay=0.2)
        assert torch.allclose(table.weight, weight * 0.9)
        assert torch.equal(table.bias, torch.full((3,), -2.0))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_two_micro_batches_make_the_step_of_one_batch(optimizer: str) -> None:
    vectors, targets = a_batch(3, 7, 10, 4)
    whole, cut = (table_of(10, 4, chunk=4, optimizer=optimizer) for _ in range(2))
    for _ in range(3):
        whole.update([Work(vectors, targets, 7.0)], 0.1)
        cut.update([Work(vectors[:5], targets.part(0, 5), 7.0), Work(vectors[5:], targets.part(5, 7), 7.0)], 0.1)
    assert torch.allclose(whole.weight, cut.weight, atol=1e-5)
    assert torch.allclose(whole.bias, cut.bias, atol=1e-5)


def test_an_update_without_texts_changes_nothing() -> None:
    table = table_of(3, 2)
    before = table.weight.clone()
    table.update([], 0.1, 0.5)
    assert torch.equal(table.weight, before)
    assert table.n_updates == 0


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_bfloat16_keeps_small_updates_in_the_mean(optimizer: str) -> None:
    n_rows, wanted = 20_000, 0.1 * 2**-8  # numbers just below 1 are 2^-8 apart
    table = table_of(n_rows, 1, storage="bfloat16", optimizer=optimizer, bias=False, loss="squared_hinge")
    table.weight.data.fill_(1.0)
    # Each row's gradient is 2 · (1 + 1) · 1; Adam's first change is the rate itself.
    rate = wanted if optimizer == "adam" else wanted / 4
    table.update([Work(torch.ones(1, 1), targets_of([[]], n_rows), 1.0)], rate)
    values = table.weight.float()
    assert set(values.unique().tolist()) == {1.0, 1 - 2**-8}
    assert 1 - float(values.double().mean()) == pytest.approx(wanted, rel=0.1)  # 4.7 standard deviations


def test_bfloat16_numbers_that_need_no_rounding_stay() -> None:
    table = table_of(50, 3, storage="bfloat16", optimizer="sgd")
    before = table.weight.clone()
    table.update([Work(torch.zeros(1, 3), targets_of([[]], 50), 1.0)], 0.1)
    assert torch.equal(table.weight, before)


def test_padding_rows_have_no_loss_and_no_gradient_and_do_not_learn() -> None:
    real = np.array([True, False, True, True, False, False])
    vectors, _ = a_batch(1, 4, 6, 3)
    targets = targets_of([[0], [2, 3], [], [3]], 6)
    found = []
    for garbage in (0.0, 1e4):
        table = table_of(6, 3, group=2, bias=False, real=real, chunk=2, optimizer="sgd", momentum=0.0)
        table.weight.data[~torch.from_numpy(real)] = garbage
        work = Work(vectors, targets, 4.0)
        found.append(table.gradient(work, show=True))
        table.update([work], 1.0)
        assert torch.equal(table.weight[~torch.from_numpy(real)], torch.full((3, 3), garbage))
        assert all(
            bool((logits[:, ~real[start : start + 2]] == -torch.inf).all()) for start, logits in table.logits(vectors)
        )
    expected = dense_loss("bce", vectors @ table_of(6, 3, bias=False).weight[real].T, targets.dense(6)[:, real])
    for gradient, value in found:
        assert torch.allclose(value, expected, atol=1e-5)
        assert torch.equal(gradient, found[0][0])


def test_a_table_goes_on_from_its_state() -> None:
    first, second = table_of(9, 4, chunk=4), table_of(9, 4, chunk=4)
    works = [[Work(*a_batch(step, 5, 9, 4), 5.0)] for step in range(4)]
    for work in works[:2]:
        first.update(work, 0.1, 0.01)
    second.load_state_dict(first.state_dict())
    second.load_state(first.state())
    for work in works[2:]:
        first.update(work, 0.1, 0.01)
        second.update(work, 0.1, 0.01)
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)


@settings(max_examples=40)
@given(st.integers(0, 1000))
def test_squared_hinge_is_zero_just_where_all_margins_reach_one(seed: int) -> None:  # docs/methods/xbert.md#invariant-6
    rng = np.random.default_rng(seed)
    truth = rng.random((3, 4)) < 0.5
    margins = rng.choice([0.5, 1.0, 1.5, 3.0], (3, 4))
    table = table_of(4, 3, loss="squared_hinge", bias=False)
    table.weight.data = torch.from_numpy(np.where(truth, margins, -margins).T.astype(np.float32))  # texts are units
    targets = targets_of([np.flatnonzero(row).tolist() for row in truth], 4)
    gradient, value = table.gradient(Work(torch.eye(3), targets, 3.0), show=True)
    assert ((value == 0).numpy() == (margins >= 1).all(1)).all()
    zero = torch.from_numpy((margins >= 1).all(1))
    assert bool((gradient[zero] == 0).all())


def test_squared_hinge_has_the_gradient_of_its_finite_differences() -> None:  # docs/methods/xbert.md#invariant-6
    table = table_of(5, 3, loss="squared_hinge").double()
    vectors, targets = a_batch(2, 4, 5, 3)
    vectors = vectors.double()
    gradient, _ = table.gradient(Work(vectors, targets, 4.0), show=False)
    signs = 2 * targets.dense(5).double() - 1
    margins = signs * (vectors @ table.weight.T + table.bias)
    by_logit = -2 * signs * (1 - margins).clamp(min=0)
    assert torch.allclose(gradient.double(), by_logit @ table.weight, atol=1e-5)
    for column in range(3):
        nudge = torch.zeros(3, dtype=torch.float64)
        nudge[column] = 1e-2
        ahead, behind = (table.gradient(Work(vectors + sign * nudge, targets, 4.0), True)[1] for sign in (1, -1))
        assert torch.allclose((ahead - behind).double() / 2e-2, gradient[:, column].double(), atol=0.1)


@pytest.mark.parametrize("loss", [*LOSSES, "softmax"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_one_pass_gives_the_rows_of_two(optimizer: str, loss: Loss) -> None:
    one, two = (table_of(11, 4, chunk=3, loss=loss, optimizer=optimizer, passes=passes) for passes in (1, 2))
    for step in range(4):
        vectors, targets = a_batch(step, 5, 11, 4)
        gradients = []
        for table in (one, two):
            sums = table.log_sums(vectors, targets) if loss == "softmax" else None
            work = Work(vectors, targets, 5.0, sums=sums)
            table.begin_step(0.1, 0.01)
            gradients.append(table.gradient(work, show=False)[0])
            before = table.weight.clone()
            table.update([work], 0.1, 0.01)
            assert torch.equal(table.weight, before) == (table is one)  # it was updated already
        assert torch.equal(*gradients)
    assert torch.equal(one.weight, two.weight)
    assert torch.equal(one.bias, two.bias)
    assert one.n_updates == two.n_updates == 4


def test_one_pass_leaves_rows_alone_where_nothing_is_learned() -> None:
    table = table_of(6, 3, passes=1)
    before = table.weight.clone()
    table.begin_step(0.1)
    with torch.no_grad():  # a loss that is only looked at
        table.gradient(Work(*a_batch(0, 4, 6, 3), 4.0), show=True)
    assert torch.equal(table.weight, before)


def test_without_momentum_no_state_is_kept() -> None:
    table = table_of(6, 3, optimizer="sgd", momentum=0.0)
    table.update([Work(*a_batch(0, 4, 6, 3), 4.0)], 0.1)
    assert table.moments == {}
    assert table.moment_bytes == 0
