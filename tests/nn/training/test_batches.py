from __future__ import annotations

import threading
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from longtail.nn.batch import Batch, Targets
from longtail.nn.training.batches import BatchPlan, ahead, steps
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix


def a_plan(n_texts: int = 50, size: int = 4, seed: int = 0, step_width: int = 4, widest: int = 11) -> BatchPlan:
    rng = np.random.default_rng(n_texts)
    lengths = rng.integers(1, 12, n_texts)
    tokens = TokenRows(rng.integers(1, 99, lengths.sum()).astype(np.uint16), np.append(0, np.cumsum(lengths)))
    lists = [sorted(rng.choice(9, rng.integers(0, 4), replace=False).tolist()) for _ in range(n_texts)]
    return BatchPlan(tokens, LabelMatrix.from_lists(lists, 9), size, seed, 0, step_width, widest)


def first(plan: BatchPlan, n: int, start: int = 0) -> list[NDArray[np.int64]]:
    return list(islice(steps(plan, start), n))


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 3), st.integers(0, 200))
def test_every_batch_is_full_and_follows_from_seed_and_step(n: int, size: int, seed: int, start: int) -> None:
    plan = a_plan(n, size, seed)
    whole = first(plan, start + 5)
    assert all(len(batch) == min(size, n) for batch in whole)
    assert np.array_equal(whole[start:], first(plan, 5, start))


@given(st.integers(1, 200), st.integers(1, 40))
def test_texts_are_read_equally_often(n: int, size: int) -> None:
    plan = a_plan(n, size)
    whole = plan.window * max(1, 200 // plan.window)  # steps of whole windows: these are cut from the stream in order
    counts = np.bincount(np.concatenate(first(plan, whole)), minlength=n)
    assert counts.max() - counts.min() <= 1


def test_seeds_and_steps_differ() -> None:
    one, two = first(a_plan(seed=0), 6), first(a_plan(seed=1), 6)
    assert not np.array_equal(one, two)
    assert len({tuple(batch) for batch in one}) == 6


@pytest.mark.parametrize(("n", "size"), [(1000, 8), (80, 16), (40, 32), (7, 7), (5, 9)])
def test_batches_of_few_texts_hold_no_copies_of_one(n: int, size: int) -> None:
    """Sorted by length over many readings, the copies of a text would lie side by side."""
    batches = first(a_plan(n, size), 60)
    distinct = [len(set(batch.tolist())) / len(batch) for batch in batches]
    assert np.mean(distinct) > 0.85


def test_texts_of_a_batch_are_of_similar_length() -> None:
    plan = a_plan(1000, 8)
    lengths = plan.tokens.lengths()
    inside = np.mean([np.ptp(lengths[batch]) for batch in first(plan, 64)])
    drawn = np.random.default_rng(0).permutation(1000)[:512].reshape(64, 8)
    assert inside < 0.3 * np.mean([np.ptp(lengths[batch]) for batch in drawn])


def test_packed_batches_have_a_text_of_every_length_and_about_as_many_tokens() -> None:
    plan = a_plan(1000, 8)
    packed = plan._replace(packed=True)
    lengths = plan.tokens.lengths()
    totals, sorted_ = (np.array([lengths[batch].sum() for batch in first(one, 64)]) for one in (packed, plan))
    assert totals.std() < 0.1 * sorted_.std()
    assert np.mean([np.ptp(lengths[batch]) for batch in first(packed, 64)]) > 8
    shapes = {len(packed.batch(batch).ids) for batch in first(packed, 128)}
    assert all(shape % packed.multiple == 0 for shape in shapes)


@given(st.integers(1, 200), st.integers(1, 40))
def test_packed_texts_are_read_equally_often(n: int, size: int) -> None:
    plan = a_plan(n, size)._replace(packed=True)
    whole = plan.window * max(1, 200 // plan.window)
    counts = np.bincount(np.concatenate(first(plan, whole)), minlength=n)
    assert counts.max() - counts.min() <= 1


@given(st.integers(1, 7), st.integers(0, 5), st.integers(1, 9))
def test_a_packed_batch_and_its_parts_hold_the_texts_one_after_the_other(size: int, seed: int, multiple: int) -> None:
    plan = a_plan(seed=seed)
    texts = np.random.default_rng(seed).permutation(50)[:7]
    whole = Batch.packed(plan.tokens, texts, multiple, plan.labels)
    for start in range(0, 7, size):
        part = whole.part(start, min(start + size, 7))
        edges = part.edges.tolist()
        assert len(part) == len(edges) - 2 == len(texts[start : start + size])
        assert len(part.ids) == edges[-1] and len(part.ids) % multiple == 0 and 0 < edges[-1] - edges[-2] <= multiple
        for number, text in enumerate(texts[start : start + size]):
            own = plan.tokens.ids[plan.tokens.ptr[text] : plan.tokens.ptr[text + 1]]
            assert part.ids[edges[number] : edges[number + 1]].tolist() == own.tolist()
        assert part.targets.texts.tolist() == texts[start : start + size].tolist()
        assert torch.equal(part.targets.dense(9), whole.targets.dense(9)[start : start + size])


def test_widths_are_multiples_of_a_step_but_never_beyond_the_limit() -> None:
    plan = a_plan(500, 8)
    widths = {plan.width(batch) for batch in first(plan, 128)}
    assert widths == {4, 8, 11}
    assert all(plan.width(batch) >= plan.tokens.lengths()[batch].max() for batch in first(plan, 128))


def test_batches_made_ahead_are_those_of_the_steps() -> None:
    plan = a_plan()
    for (number, made), (step, texts) in zip(ahead(plan, 3, 23), enumerate(first(plan, 20, 3), 3), strict=True):
        assert number == step
        wanted = plan.batch(texts)
        assert torch.equal(made.ids, wanted.ids)
        assert made.targets is not None
        assert np.array_equal(made.targets.texts, texts)


def test_parts_of_processes_are_the_whole_and_equally_wide() -> None:
    plan = a_plan(size=7)
    parts = [list(ahead(plan, 0, 5, slice(rank, None, 3))) for rank in range(3)]
    for step, texts in enumerate(first(plan, 5)):
        own = [part[step][1] for part in parts]
        assert [len(batch) for batch in own] == [3, 2, 2]
        assert sorted(np.concatenate([batch.targets.texts for batch in own])) == sorted(texts)
        assert len({batch.ids.shape[1] for batch in own}) == 1


def test_a_reader_that_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    running = ahead(a_plan(), 0, 1000)
    next(running)
    running.close()
    assert threading.active_count() == before


# What a batch is


def test_a_batch_holds_ids_a_mask_and_targets_by_label() -> None:
    plan = a_plan()
    texts = np.array([3, 0, 7])
    batch = Batch.of(plan.tokens, texts, 12, 0, plan.labels)
    lengths = plan.tokens.lengths()[texts]
    assert batch.mask is not None
    assert batch.mask.sum(1).tolist() == lengths.tolist()
    assert (batch.ids[~batch.mask] == 0).all()
    for row, text in enumerate(texts):
        start = plan.tokens.ptr[text]
        assert batch.ids[row, : lengths[row]].tolist() == plan.tokens.ids[start : start + lengths[row]].tolist()
    dense = batch.targets.dense(9)
    assert [np.flatnonzero(row).tolist() for row in dense.numpy()] == [sorted(plan.labels[int(t)]) for t in texts]
    assert (np.diff(batch.targets.host_labels) >= 0).all()


def test_a_batch_without_padding_has_no_mask() -> None:
    plan = a_plan()
    longest = int(plan.tokens.lengths().max())
    full = np.flatnonzero(plan.tokens.lengths() == longest)
    assert Batch.of(plan.tokens, full, longest, 0).mask is None
    assert Batch.of(plan.tokens, full, longest, 0).targets is None


@given(st.integers(1, 6), st.integers(0, 5))
def test_parts_of_a_batch_are_together_the_batch(size: int, seed: int) -> None:
    plan = a_plan(seed=seed, size=6)
    batch = plan.batch(first(plan, 1)[0])
    parts = [batch.part(start, min(start + size, 6)) for start in range(0, 6, size)]
    assert torch.equal(torch.cat([part.ids for part in parts]), batch.ids)
    assert torch.equal(torch.cat([part.targets.dense(9) for part in parts]), batch.targets.dense(9))
    assert np.concatenate([part.targets.texts for part in parts]).tolist() == batch.targets.texts.tolist()
    assert all((np.diff(part.targets.host_labels) >= 0).all() for part in parts)
    if batch.mask is not None:
        assert torch.equal(torch.cat([part.mask for part in parts]), batch.mask)


def test_spans_say_where_the_targets_of_neighbouring_labels_lie() -> None:
    targets = Targets.of(LabelMatrix.from_lists([[0, 5], [5, 8], []], 9), np.arange(3))
    assert targets.host_labels.tolist() == [0, 5, 5, 8]
    assert targets.spans(np.array([0, 3, 6, 9])) == [(0, 1), (1, 3), (3, 4)]
