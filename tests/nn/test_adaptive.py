"""The adaptive head, invariant by invariant.

Specified in docs/methods/aplc-xlnet.md#invariants; number 11 belongs to the schedule, 7 also to buckets.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import accumulate, product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from longtail.labels.buckets import BucketOptions, Buckets, build_buckets
from longtail.nn.batch import Targets
from longtail.nn.heads.adaptive import (
    Adaptive,
    AdaptiveOptions,
    count_parameters,
    joint_logit,
    tail_cost,
)
from longtail.nn.heads.base import HeadInputs
from longtail.types import LabelMatrix

WIDTH = 12
PAPER = {"tails": "linear", "gates": "touched", "normaliser": "per_batch"}
CODE = {"tails": "normed", "gates": "always", "normaliser": "per_text"}
LEAVES = {"head_in_root": False}
every_mode = pytest.mark.parametrize("mode", [{}, CODE, PAPER, LEAVES, {**PAPER, **LEAVES}], ids=str)


def buckets_of(sizes: Sequence[int]) -> Buckets:
    return Buckets(np.arange(sum(sizes))[::-1].copy(), np.array([0, *accumulate(sizes)]))


def head_of(sizes: Sequence[int], seed: int = 0, **options: Any) -> Adaptive:
    torch.manual_seed(seed)
    return Adaptive(WIDTH, buckets_of(sizes), AdaptiveOptions.of({"bottleneck": 16, "dropout": 0.0, **options}))


def targets_of(rows: Sequence[Sequence[int] | set[int]], n_labels: int) -> Targets:
    return Targets.of(LabelMatrix.from_lists(rows, n_labels), np.arange(len(rows)))


def vectors_of(n_texts: int, seed: int = 0) -> Tensor:
    return torch.randn(n_texts, WIDTH, generator=torch.Generator().manual_seed(seed))


def gradients(head: Adaptive, vectors: Tensor, loss: Tensor) -> dict[str, Tensor]:
    """By parameter name, and of the vectors; zero where a parameter takes no part."""
    named = {**dict(head.named_parameters()), "vectors": vectors}
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(own) if grad is None else grad
        for (name, own), grad in zip(named.items(), found, strict=True)
    }


def dense_loss(head: Adaptive, vectors: Tensor, truth: Tensor) -> Tensor:
    """The definition: every probability as a product, every term behind a mask, in double precision."""
    options, n_tails = head.options, len(head.tails)
    inner = torch.tanh(vectors @ head.bottleneck.weight.T + head.bottleneck.bias)
    root = inner @ head.root.weight.T
    n_root = root.shape[1] - n_tails
    gates = torch.sigmoid(root[:, n_root:])
    chances, masks = [torch.sigmoid(root[:, :n_root])], [torch.ones(len(truth), n_root)]
    touched, start = [], n_root
    for number in range(n_tails):
        tail = head.get_submodule(f"tails.{number}")
        own = inner @ tail.get_parameter("narrow.weight").T
        if options.tails == "normed":
            scale = (own - own.mean(1, keepdim=True)) / (own.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
            own = (scale * tail.get_parameter("norm.weight") + tail.get_parameter("norm.bias")).clamp(min=0)
        own = own @ tail.get_parameter("labels.weight").T
        chances.append(gates[:, [number]] * torch.sigmoid(own))
        hit = truth[:, start : start + own.shape[1]].sum(1, keepdim=True) > 0
        masks.append(hit.expand(-1, own.shape[1]))
        touched.append(hit)
        start += own.shape[1]
    chance, mask = torch.cat(chances, 1), torch.cat(masks, 1).double()
    costs = (-(truth * chance.log() + (1 - truth) * (-chance).log1p()) * mask).sum(1)
    terms = mask.sum(1)
    if options.gates == "always" and n_tails:
        shut = 1 - torch.cat(touched, 1).double()
        costs, terms = costs - ((-gates).log1p() * shut).sum(1), terms + shut.sum(1)
    if options.normaliser == "per_batch":
        return costs.sum() / terms.sum().clamp(min=1)
    return (costs / terms.clamp(min=1)).mean()


def assert_equals_dense(head: Adaptive, rows: Sequence[Sequence[int] | set[int]], seed: int = 0) -> None:
    targets, vectors = targets_of(rows, head.n_labels), vectors_of(len(rows), seed).requires_grad_()
    exact, wide = copy.deepcopy(head).double(), vectors.detach().double().requires_grad_()
    loss, expected = (
        head.loss(HeadInputs(vectors), targets),
        dense_loss(exact, wide, targets.dense(head.n_labels).double()),
    )
    assert loss.shape == ()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6, abs=1e-6)
    theirs = gradients(exact, wide, expected)
    for name, grad in gradients(head, vectors, loss).items():
        torch.testing.assert_close(grad.double(), theirs[name], atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


# 1


@pytest.mark.parametrize("mode", [{}, CODE, PAPER])
def test_one_bucket_is_plain_binary_cross_entropy(mode: dict[str, Any]) -> None:
    head, vectors = head_of([7], **mode), vectors_of(5).requires_grad_()
    targets = targets_of([[0, 3], [], [6], [1, 2, 5], [4]], 7)
    loss = head.loss(HeadInputs(vectors), targets)
    logits = torch.tanh(head.bottleneck(vectors)) @ head.root.weight.T
    plain = F.binary_cross_entropy_with_logits(logits, targets.dense(7))
    assert loss.item() == pytest.approx(plain.item(), abs=1e-6)
    expected = gradients(head, vectors, plain)
    for name, grad in gradients(head, vectors, loss).items():
        torch.testing.assert_close(grad, expected[name], atol=1e-6, rtol=1e-5)


# 2


def test_an_open_gate_leaves_the_label_and_a_shut_gate_leaves_nothing() -> None:
    own = torch.tensor([[-3.0, 0.0, 2.0]])
    for far in (1e4, float("inf")):
        torch.testing.assert_close(joint_logit(torch.tensor([[far]]), own), own)
        assert (joint_logit(torch.tensor([[-far]]), own) <= -far + 2).all()
    nothing = torch.zeros(0, dtype=torch.int64)
    assert tail_cost(torch.tensor([-float("inf")]), own, nothing, nothing).tolist() == [0]
    opened = tail_cost(torch.tensor([float("inf")]), own, nothing, nothing)
    torch.testing.assert_close(opened, F.softplus(own).sum(1))


def test_gates_of_a_head_open_and_shut_its_tails() -> None:
    head, vectors = head_of([2, 4], activation="none"), vectors_of(3)
    with torch.no_grad():
        head.bottleneck.bias.fill_(1e3)  # every inner vector points the same way
        tail = torch.sigmoid(head.tails[0](head.bottleneck(vectors)))
        for sign, expected in ((1, tail), (-1, torch.zeros(3, 4))):
            head.root.weight[2] = sign
            torch.testing.assert_close(head.log_scores(vectors)[:, 2:].exp(), expected)


# 3


def test_a_bare_tail_with_an_identity_inside_is_a_dense_layer() -> None:
    head, vectors = head_of([2, 5], shrink=1, **PAPER), vectors_of(4)
    with torch.no_grad():
        head.get_parameter("tails.0.narrow.weight").copy_(torch.eye(16))
        inner = torch.tanh(head.bottleneck(vectors))
        own = inner @ head.get_parameter("tails.0.labels.weight").T
        gates = inner @ head.root.weight[2:].T
        expected = (torch.sigmoid(gates) * torch.sigmoid(own)).log()
        torch.testing.assert_close(head.log_scores(vectors)[:, 2:], expected)


# 4


@pytest.mark.parametrize(
    ("width", "n_labels", "cuts", "paper", "code", "dense"),
    [
        (768, 3956, (1978,), 2_574_336, 2_575_104, 3_038_208),
        (768, 13330, (6665,), 7_973_760, 7_974_528, 10_237_440),
        (768, 30938, (15469,), 18_115_968, 18_116_736, 23_760_384),
        (512, 501008, (125252, 250504, 375756), 120_472_832, 120_473_728, 256_516_096),
        (768, 501008, (167000, 334000), 224_893_440, 224_894_592, 384_774_144),
        (384, 670091, (167522, 335045, 502566), 120_746_256, 120_746_928, 257_314_944),
        (512, 670091, (167522, 335045, 502566), 161_052_352, 161_053_248, 343_086_592),
    ],
)
def test_published_parameter_counts_are_met_to_the_unit(
    width: int, n_labels: int, cuts: tuple[int, ...], paper: int, code: int, dense: int
) -> None:
    buckets = Buckets(np.arange(n_labels), np.array([0, *cuts, n_labels]))
    for mode, expected in ((PAPER, paper), (CODE, code), ({}, code)):
        options = AdaptiveOptions.of({"bottleneck": width, **mode})
        with torch.device("meta"):
            head = Adaptive(WIDTH, buckets, options)
        held = sum(own.numel() for name, own in head.named_parameters() if not name.startswith("bottleneck."))
        assert held == count_parameters(width, buckets.sizes.tolist(), options) == expected
        assert head.facts()["size_ratio"] == expected / dense


@every_mode
def test_counted_parameters_are_those_the_head_holds(mode: dict[str, Any]) -> None:
    head = head_of([3, 2, 4], **mode)
    held = sum(own.numel() for name, own in head.named_parameters() if not name.startswith("bottleneck."))
    assert held == count_parameters(16, [3, 2, 4], head.options)
    assert head.facts()["n_parameters"] == held + WIDTH * 16 + 16


# 5


@every_mode
def test_a_label_is_never_likelier_than_its_gate(mode: dict[str, Any]) -> None:
    head, vectors = head_of([3, 4, 5], **mode), 3 * vectors_of(20)
    with torch.no_grad():
        scores = head.log_scores(vectors)
        gates = F.logsigmoid(torch.tanh(head.bottleneck(vectors)) @ head.root.weight.T)
    assert scores.shape == (20, 12)
    assert torch.isfinite(scores).all()
    assert (scores < 0).all()
    first = 0 if mode.get("head_in_root") is False else 1
    for number, (start, stop) in enumerate([(0, 3), (3, 7), (7, 12)][first:]):
        gate = gates[:, [gates.shape[1] - (3 - first) + number]]
        assert (scores[:, start:stop] <= gate).all()


# 6


@pytest.mark.parametrize(
    "rows",
    [
        [[], []],
        [[0], [1, 2], [0, 2]],
        [[3], [4, 5], [6]],
        [[8, 9, 10, 11], [11], [8]],
        [[]],
        [[1]],
        [[7]],
        [[0, 4, 9]],
        [list(range(12)), list(range(12))],
        [[0, 11], [], [5], [2, 3, 7]],
    ],
    ids=str,
)
@every_mode
def test_tails_on_their_own_rows_equal_the_masked_dense_loss(mode: dict[str, Any], rows: list[list[int]]) -> None:
    assert_equals_dense(head_of([3, 4, 5], **mode), rows)


@settings(max_examples=60)
@given(st.data())
def test_every_split_and_every_label_set_equals_the_masked_dense_loss(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.sets(st.integers(0, sum(sizes) - 1)), min_size=1, max_size=6))
    mode: dict[str, Any] = {name: data.draw(st.sampled_from([PAPER[name], CODE[name]])) for name in PAPER}
    seed = data.draw(st.integers(0, 1000))
    assert_equals_dense(head_of(sizes, seed, head_in_root=data.draw(st.booleans()), **mode), rows, seed)


def test_the_written_gradient_of_a_tail_is_that_of_its_cost() -> None:
    torch.manual_seed(0)
    gates = torch.tensor([0.0, -2.0, 1.5, 3.0], dtype=torch.float64, requires_grad=True)
    own = torch.randn(4, 5, dtype=torch.float64).mul(2)
    own[0] = torch.tensor([0.0, 0.0, 1.0, -1.0, 5.0])  # equal to the gate, too
    rows, columns = torch.tensor([0, 0, 2, 3]), torch.tensor([1, 4, 0, 3])
    assert torch.autograd.gradcheck(lambda g, s: tail_cost(g, s, rows, columns), (gates, own.requires_grad_()))


# 7


@every_mode
def test_places_follow_the_order_of_the_buckets(mode: dict[str, Any]) -> None:
    head = head_of([3, 4, 5], **mode)
    assert head.order is not None
    np.testing.assert_array_equal(head.order, np.arange(12)[::-1])
    assert head.n_labels == 12
    for place in range(12):  # only the head's own place learns from a text that has one label
        vectors = vectors_of(1)
        before = head.log_scores(vectors).detach()
        trained = copy.deepcopy(head)
        loss = trained.loss(HeadInputs(vectors), targets_of([[place]], 12))
        loss.backward()
        with torch.no_grad():
            for name, own in trained.named_parameters():
                if own.grad is not None and (name.startswith("root") or name.endswith("labels.weight")):
                    own -= 0.3 * own.grad
        gained = (trained.log_scores(vectors) - before)[0]
        assert gained.argmax() == place


# 8


@every_mode
def test_renumbering_labels_inside_a_tail_renumbers_scores_and_leaves_the_loss(mode: dict[str, Any]) -> None:
    head, vectors = head_of([3, 4, 5], **mode), vectors_of(4)
    rows = [[0, 3, 5], [8, 11], [], [4, 9]]
    moved = copy.deepcopy(head)
    own = torch.tensor([2, 0, 3, 1])
    name = f"tails.{len(head.tails) - 2}.labels.weight"
    with torch.no_grad():
        moved.get_parameter(name).copy_(head.get_parameter(name)[own])
    order = torch.cat([torch.arange(3), 3 + own, torch.arange(7, 12)])
    torch.testing.assert_close(moved.log_scores(vectors), head.log_scores(vectors)[:, order])
    place = torch.argsort(order).tolist()
    same = moved.loss(HeadInputs(vectors), targets_of([[place[label] for label in row] for row in rows], 12))
    assert same.item() == pytest.approx(head.loss(HeadInputs(vectors), targets_of(rows, 12)).item(), rel=1e-6)


# 9


@pytest.mark.parametrize("mode", [{}, CODE, LEAVES], ids=str)
def test_a_tail_without_labels_in_the_batch_learns_nothing_but_its_gate_does(mode: dict[str, Any]) -> None:
    head, vectors = head_of([3, 4, 5], **mode), vectors_of(3)
    head.loss(HeadInputs(vectors), targets_of([[0, 3], [], [6, 1]], 12)).backward()
    last = len(head.tails) - 1
    for name, own in head.named_parameters():
        if name.startswith(f"tails.{last}."):
            assert own.grad is None or not own.grad.any()
        else:
            assert own.grad is not None, name
    assert head.root.weight.grad is not None
    assert head.root.weight.grad[-1].any()


def test_in_the_paper_the_gate_of_such_a_tail_learns_nothing_either() -> None:
    head = head_of([3, 4], **PAPER)
    head.loss(HeadInputs(vectors_of(2)), targets_of([[0], []], 7)).backward()
    assert head.root.weight.grad is not None
    assert not head.root.weight.grad[-1].any()


# 10

FAR = [0.0, 1e-3, 1.0, 16.5, 30.0, 88.0, 104.0, 1e3, 1e4]


def exact(r: float, s: float) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    """To sixty digits: −log p, −log(1 − p), and the derivatives of the second by r and s."""
    with localcontext(prec=60):
        a, b = Decimal(r).exp(), Decimal(s).exp()
        low, high = 1 + 1 / a, 1 + 1 / b
        both = 1 + a + b
        chance = 1 / (low * high)
        return low.ln() + high.ln(), (1 + a * b / both).ln(), chance * (1 + b) / both, chance * (1 + a) / both


def test_costs_and_gradients_match_sixty_digits_in_single_precision() -> None:
    ends = [*FAR, *(-far for far in FAR)]
    drawn = np.random.default_rng(0).uniform(-40, 40, (150, 2)).astype(np.float32).tolist()
    for r, s in [*product(np.float32(ends).tolist(), repeat=2), *drawn]:
        gate, own = torch.tensor([r], requires_grad=True), torch.tensor([[s]], requires_grad=True)
        none, first = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        negative, positive = tail_cost(gate, own, none, none), tail_cost(gate, own, first, first)
        by_gate, by_own = torch.autograd.grad(negative, [gate, own])
        found = [positive.item(), negative.item(), by_gate.item(), by_own.item()]
        for mine, theirs in zip(found, exact(r, s), strict=True):
            assert mine == pytest.approx(float(theirs), rel=1e-5, abs=1e-37), (r, s)


def test_thirty_and_thirty_is_not_lost_as_it_would_be_in_a_product_of_sigmoids() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert torch.sigmoid(torch.tensor(30.0)) == 1
    found = tail_cost(torch.tensor([30.0]), torch.tensor([[30.0]]), none, none)
    assert found.item() == pytest.approx(29.3068528, rel=1e-6)


# 12


@every_mode
def test_a_label_that_is_given_twice_counts_once(mode: dict[str, Any]) -> None:
    head, vectors = head_of([3, 4, 5], **mode), vectors_of(3).requires_grad_()
    once = targets_of([[0, 3, 8], [4], [1, 11]], 12)
    rows, labels = np.repeat(once.host_rows, 3), np.repeat(once.host_labels, 3)
    thrice = Targets.of_pairs(rows, labels, once.texts)
    assert head.loss(HeadInputs(vectors), thrice).item() == head.loss(HeadInputs(vectors), once).item()
    expected = gradients(head, vectors, head.loss(HeadInputs(vectors), once))
    for name, grad in gradients(head, vectors, head.loss(HeadInputs(vectors), thrice)).items():
        torch.testing.assert_close(grad, expected[name])


# Micro-batches


@pytest.mark.parametrize("mode", [{}, CODE, LEAVES, {"tails": "linear", "gates": "touched"}], ids=str)
@pytest.mark.parametrize("cut", [1, 2, 4])
def test_micro_batches_with_their_shares_add_up_to_the_batch(mode: dict[str, Any], cut: int) -> None:
    head, vectors = head_of([3, 4, 5], **mode), vectors_of(5).requires_grad_()
    targets = targets_of([[0, 3, 8], [], [4, 5], [1], [2, 11]], 12)
    whole = head.loss(HeadInputs(vectors), targets)
    parts = [
        head.loss(HeadInputs(vectors[start:stop]), targets.part(start, stop), share=(stop - start) / 5)
        for start, stop in ((0, cut), (cut, 5))
    ]
    assert sum(part.item() for part in parts) == pytest.approx(whole.item(), rel=1e-6)
    expected = gradients(head, vectors, whole)
    for name, grad in gradients(head, vectors, torch.stack(parts).sum()).items():
        torch.testing.assert_close(grad, expected[name], atol=1e-6, rtol=1e-5)


def test_a_head_that_has_learned_nothing_gives_each_label_its_frequency() -> None:
    rng = np.random.default_rng(0)
    counts = np.array([40, 30, 20, 10, 8, 5, 3, 2])
    buckets = build_buckets(counts, BucketOptions(shares=(0.25, 0.25, 0.5)))
    lists = [[label for label in range(8) if rng.random() < counts[label] / 60] for _ in range(60)]
    places = LabelMatrix.from_lists(lists, 8)
    head = Adaptive(8, buckets, AdaptiveOptions(dropout=0.0))
    with torch.no_grad():
        for part in (head.root, *(tail.labels for tail in head.tails)):
            part.weight.zero_()
    head.init_from_labels(places)
    found = head.log_scores(torch.randn(2, 8)).exp().detach().numpy()
    expected = places.texts_per_label() / 60
    assert found[0] == pytest.approx(expected, abs=0.02)
    assert np.array_equal(found[0], found[1])
    plain = Adaptive(8, buckets, AdaptiveOptions(prior=False))
    plain.init_from_labels(places)
    assert not plain.prior.any() and not any(tail.prior.any() for tail in plain.tails)
