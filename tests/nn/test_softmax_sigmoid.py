"""The loss that TReaderXML's paper prints, beside BCE (docs/methods/treaderxml.md#loss, #invariant-9)."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.softmax_sigmoid import SoftmaxSigmoid
from longtail.types import LabelMatrix

WIDTH, N_LABELS = 5, 9
label_lists = st.lists(st.lists(st.integers(0, N_LABELS - 1), max_size=5, unique=True), min_size=1, max_size=6)


def a_head(seed: int, scale: float = 1.0) -> SoftmaxSigmoid:
    torch.manual_seed(seed)
    head = SoftmaxSigmoid(WIDTH, N_LABELS)
    head.rows.weight.data.mul_(scale)
    return head


def targets(lists: list[list[int]]) -> Targets:
    return Targets.of(LabelMatrix.from_lists(lists, N_LABELS), np.arange(len(lists)))


@settings(max_examples=60)
@given(label_lists, st.integers(0, 999), st.sampled_from([0.1, 1.0, 30.0]))
def test_the_loss_is_as_printed_and_never_below_its_floor(lists: list[list[int]], seed: int, scale: float) -> None:
    head = a_head(seed, scale)
    vectors, own = torch.randn(len(lists), WIDTH), targets(lists)
    p = head.logits(vectors).softmax(1)
    printed = F.binary_cross_entropy(p.sigmoid(), own.dense(N_LABELS), reduction="none").sum(1)
    loss = head.loss(HeadInputs(vectors), own, show=True)
    torch.testing.assert_close(loss, printed.mean())
    floor = [(N_LABELS - len(own)) * math.log(2) + len(own) * 0.3132 for own in lists]
    assert (printed.detach().numpy() >= np.array(floor) - 1e-5).all()


@settings(max_examples=30)
@given(label_lists, st.integers(0, 999))
def test_the_other_loss_is_bce_of_the_logits(lists: list[list[int]], seed: int) -> None:
    head = a_head(seed)
    dense = Dense(WIDTH, N_LABELS)
    dense.table.load_state_dict({"weight": head.rows.weight.data, "bias": head.rows.bias.data})
    vectors, own = torch.randn(len(lists), WIDTH), targets(lists)
    expected = F.binary_cross_entropy_with_logits(head.logits(vectors), own.dense(N_LABELS), reduction="none")
    torch.testing.assert_close(dense.loss(HeadInputs(vectors), own, show=True), expected.sum(1).mean())


@settings(max_examples=30)
@given(st.integers(0, 999), st.integers(1, N_LABELS))
def test_labels_stand_in_the_same_order_as_by_their_logits(seed: int, k: int) -> None:
    head = a_head(seed)
    dense = Dense(WIDTH, N_LABELS)
    dense.table.load_state_dict({"weight": head.rows.weight.data, "bias": head.rows.bias.data})
    vectors = torch.randn(4, WIDTH)
    scores, places = head.top_k(HeadInputs(vectors), k)
    assert torch.equal(places, dense.top_k(HeadInputs(vectors), k)[1])
    assert (scores.diff(dim=1) <= 0).all()
    assert ((scores > 0) & (scores <= 1)).all()


def test_equal_labels_stand_by_number_and_micro_batches_add_up() -> None:
    head = a_head(0)
    head.rows.weight.data.zero_()
    head.rows.bias.data.zero_()
    assert head.top_k(HeadInputs(torch.randn(2, WIDTH)), 4)[1].tolist() == [[0, 1, 2, 3]] * 2
    head, vectors, lists = a_head(1), torch.randn(3, WIDTH), [[1], [2, 3], []]
    parts = head.loss(HeadInputs(vectors[:2]), targets(lists[:2]), 2 / 3) + head.loss(
        HeadInputs(vectors[2:]), targets(lists[2:]), 1 / 3
    )
    torch.testing.assert_close(parts, head.loss(HeadInputs(vectors), targets(lists)))
