"""The best labels of the shortlist head, and what the trainer sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs, Step, positions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import LabelTableOptions
from longtail.types import LabelMatrix

from .problems import PLAIN, STEP, WIDTH, Problem, Reference, a_head, a_problem, close, index_of, trained


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), n=st.integers(1, 5), k=st.integers(1, 17), at_once=st.sampled_from([1, 1 << 25]))
def test_the_best_labels_are_exact_among_the_recalled_clusters(
    seed: int, n: int, k: int, at_once: int
) -> None:  # docs/methods/lightxml.md#invariant-4
    problem = a_problem(seed)
    head = a_head(problem.index, seed, n_clusters_ranked=n)
    head.rank.numbers_at_once = at_once
    scores, places = head.top_k(HeadInputs(problem.vectors), k)
    expected = Reference.of(head, problem).scores().detach().numpy()
    clusters = head.recalled(problem.vectors)[1].numpy()
    assert scores.shape == places.shape == (6, k)
    for text in range(6):
        real = np.flatnonzero(np.isin(problem.index.parents[-1], clusters[text]))
        best = real[np.argsort(-expected[text, real], kind="stable")][:k]
        found = int((places[text] >= 0).sum())
        assert head.order[places[text, :found].numpy()].tolist() == best.tolist()
        assert np.allclose(scores[text, :found], expected[text, best], atol=1e-6)
        assert bool((places[text, found:] == -1).all())
        assert bool((scores[text, found:] == -torch.inf).all())


def test_far_scores_are_ordered_though_their_product_is_zero() -> None:
    head = a_head(index_of([0, 0, 1, 1]))
    head.bottleneck.weight.data.zero_()
    head.bottleneck.bias.data.fill_(1.0)
    head.recall.weight.data.zero_()
    head.recall.bias.data = torch.tensor([-160.0, -170.0])
    head.rank.weight.data = torch.tensor([[-30.0], [-20.0], [-15.0], [-12.0]]).expand(-1, 4).contiguous()
    scores, places = head.top_k(HeadInputs(torch.ones(1, WIDTH)), 4)
    assert head.order[places.numpy()].tolist() == [[3, 2, 1, 0]]  # log scores −218, −230, −240, −280
    assert scores.tolist() == [[0, 0, 0, 0]]


def test_equal_scores_come_by_label_not_by_cluster() -> None:
    head = a_head(index_of([2, 1, 0, 2, 1, 0]))
    for value in head.bulk.values():
        value.data.zero_()
    scores, places = head.top_k(HeadInputs(torch.ones(2, WIDTH)), 6)
    assert head.order[places.numpy()].tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    assert torch.equal(scores, torch.full((2, 6), 0.25))


def test_renumbered_clusters_leave_the_scores() -> None:  # docs/methods/lightxml.md#invariant-6
    problem = a_problem(10)
    new_id = np.array([3, 0, 4, 1, 2])
    other = Problem(index_of(new_id[problem.index.parents[-1]]), problem.lists, problem.vectors)
    head, moved = a_head(problem.index, n_clusters_ranked=3), a_head(other.index, n_clusters_ranked=3)
    moved.bottleneck.load_state_dict(head.bottleneck.state_dict())
    moved.recall.weight.data[new_id] = head.recall.weight
    moved.recall.bias.data[new_id] = head.recall.bias
    for name in ("weight", "bias"):
        values = head.rank.get_parameter(name)[positions(head.order, 17)]
        moved.rank.get_parameter(name).data[positions(moved.order, 17)] = values
    scores, places = head.top_k(HeadInputs(problem.vectors), 10)
    moved_scores, moved_places = moved.top_k(HeadInputs(problem.vectors), 10)
    assert torch.allclose(scores, moved_scores)
    one, two = (np.where(p >= 0, h.order[p], -1) for h, p in ((head, places), (moved, moved_places)))
    assert np.array_equal(one, two)


def test_with_a_cluster_a_label_the_recall_is_the_dense_head() -> None:  # docs/methods/lightxml.md#invariant-5
    lists = [[0, 4], [], [2, 3, 6], [1]]
    problem = Problem(index_of(np.arange(7)), lists, torch.randn(4, WIDTH))
    head, dense = a_head(problem.index, parts="recall", n_clusters_ranked=3), Dense(WIDTH, 7, PLAIN)
    dense.table.load_state_dict(head.recall.state_dict())
    vectors = problem.vectors.clone().requires_grad_()
    loss = dense.loss(HeadInputs(vectors), Targets.of(LabelMatrix.from_lists(lists, 7), np.arange(4)), show=True)
    loss.backward()
    assert torch.equal(head.recalled(problem.vectors)[1], dense.top_k(HeadInputs(problem.vectors), 3)[1])
    found = trained(head, problem)
    dense.step(STEP)
    assert found["loss"].item() * 7 == pytest.approx(loss.item(), abs=1e-4)
    assert close(found["vectors"] * 7, vectors.grad)
    assert close(head.recall.weight, dense.table.weight)


def test_a_forgotten_loss_and_one_without_gradients_teach_nothing() -> None:
    problem = a_problem(11)
    head = a_head(problem.index)
    head.loss(HeadInputs(problem.vectors), problem.targets(head))
    head.forget()
    with torch.no_grad():
        head.loss(HeadInputs(problem.vectors), problem.targets(head))
    head.step(STEP)
    assert (head.recall.n_updates, head.rank.n_updates) == (0, 0)


def test_a_saved_head_goes_on_as_if_never_stopped() -> None:
    problem = a_problem(12)
    heads = [a_head(problem.index, seed, LabelTableOptions(), n_clusters_ranked=2) for seed in (0, 1)]
    heads[0].loss(HeadInputs(problem.vectors), problem.targets(heads[0]))
    heads[0].step(Step({"head": 0.1}))
    heads[1].load_state_dict(heads[0].state_dict())
    for name, table in heads[1].tables().items():
        table.load_state(heads[0].tables()[name].state())
    for head in heads:
        head.loss(HeadInputs(problem.vectors), problem.targets(head))
        head.step(Step({"head": 0.1}, decay=0.1))
    assert all(torch.equal(heads[0].bulk[name], heads[1].bulk[name]) for name in heads[0].bulk)


def test_a_head_saved_before_labels_had_biases_ranks_as_it_did() -> None:
    problem = a_problem(12)
    head = a_head(problem.index, n_clusters_ranked=2)
    without = {name: value for name, value in head.state_dict().items() if name != "rank.bias"}
    head.load_state_dict(without, assign=True)
    assert bool((head.rank.bias == 0).all())


@pytest.mark.parametrize("compute", ["masked", "gather"])
def test_half_precision_changes_little(compute: str) -> None:
    problem = a_problem(13)
    head = a_head(problem.index, n_clusters_ranked=5, compute=compute)
    vectors = problem.vectors.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = head.loss(HeadInputs(vectors), problem.targets(head), show=True)
        scores, _ = head.top_k(HeadInputs(problem.vectors), 5)
    loss.backward()
    exact = trained(a_head(problem.index, n_clusters_ranked=5, compute=compute), problem)
    assert loss.item() == pytest.approx(exact["loss"].item(), rel=0.02)
    assert vectors.grad is not None
    assert F.cosine_similarity(vectors.grad, exact["vectors"]).min() > 0.99
    assert torch.allclose(scores, head.top_k(HeadInputs(problem.vectors), 5)[0], atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compute", ["masked", "gather"])
def test_a_step_on_a_gpu_never_waits_for_it_and_agrees_with_the_host(compute: str) -> None:
    problem = a_problem(14, 300, 40, 32)
    device = torch.device("cuda")
    head, other = (a_head(problem.index, n_clusters_ranked=5, compute=compute) for _ in range(2))
    expected, best = trained(head, problem), other.top_k(HeadInputs(problem.vectors), 20)
    other.to(device)
    targets, vectors = problem.targets(other), problem.vectors.to(device).requires_grad_()
    before = {name: value.clone() for name, value in other.bulk.items()}
    scores, places = other.top_k(HeadInputs(vectors.detach()), 20)
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss = other.loss(HeadInputs(vectors), targets.to(device), show=True)
        loss.backward()
        other.step(STEP)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert loss.item() == pytest.approx(expected["loss"].item(), abs=1e-4)
    assert torch.allclose(vectors.grad.cpu(), expected["vectors"], atol=1e-5)
    for name, value in other.bulk.items():
        assert torch.allclose((before[name] - value).cpu(), expected[name], atol=1e-4), name
    assert torch.equal(places.cpu(), best[1])
    assert torch.allclose(scores.cpu(), best[0], atol=1e-5)
