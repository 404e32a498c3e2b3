"""Label-wise attention beside the same in plain torch, trained by autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets
from longtail.nn.heads.attention import Words
from longtail.nn.heads.base import HeadInputs, positions
from longtail.nn.heads.labelwise import Labelwise, LabelwiseOptions
from longtail.nn.heads.labelwise_candidates import LabelwiseWithin
from longtail.types import LabelMatrix

N_TEXTS, N_WORDS, WIDTH, N_LABELS = 5, 7, 6, 21
LENGTHS = (7, 3, 1, 5, 7)
LISTS = [[3, 4, 20], [], [0], [3, 11, 12, 13], [7]]
SHAPES: dict[str, dict[str, Any]] = {
    "one layer": {"widths": (4,)},
    "two layers": {"widths": (5, 3)},
    "outputs of their own": {"widths": (4,), "own_output": True},
    "as the authors'": {"widths": (5, 4), "prior": False},
    "small chunks": {"widths": (4,), "chunk": 8 * N_TEXTS * N_WORDS, "own_output": True},
}
every_shape = pytest.mark.parametrize("shape", SHAPES)


def words(seed: int = 0) -> tuple[Tensor, Tensor]:
    """States that are zero at padding, and the mask."""
    mask = torch.arange(N_WORDS) < torch.tensor(LENGTHS)[:, None]
    return torch.randn(N_TEXTS, N_WORDS, WIDTH, generator=torch.Generator().manual_seed(seed)) * mask[..., None], mask


def a_head(shape: str) -> Labelwise:
    return shaken(Labelwise(WIDTH, N_LABELS, LabelwiseOptions(**SHAPES[shape])))


def shaken(head: Any) -> Any:
    """With weights far from where they begin, so that attention is uneven."""
    torch.manual_seed(1)
    for parameter in head.parameters():
        parameter.data.normal_()
    return head


def targets(head: Labelwise, lists: list[list[int]] = LISTS) -> Targets:
    labels = LabelMatrix.from_lists(lists, N_LABELS)
    if head.order is not None:
        labels = labels.renumber(positions(head.order, N_LABELS), len(head.order))
    return Targets.of(labels, np.arange(len(lists)))


def reference(head: Labelwise, states: Tensor, mask: Tensor) -> Tensor:
    """Logits (B, n_rows), text by text and label by label, as the formulas say."""
    made = []
    for text, real in zip(states, mask, strict=True):
        own = text[real]  # (length, d)
        attention = (own @ head.rows.T).softmax(0)  # (length, n_rows)
        state = attention.T @ own
        for layer in (head.shared.first, *head.shared.inner):
            state = layer(state).relu()
        logits = head.shared.last(state)[:, 0]
        logits = logits if head.bias is None else logits + head.bias
        made.append(logits if head.outputs is None else logits + (state * head.outputs).sum(1))
    return torch.stack(made)


def compare(head: Labelwise, loss: Tensor, expected: Tensor, states: Tensor) -> None:
    """Values and all gradients of two losses."""
    leaves = {"states": states, **dict(head.named_parameters())}
    torch.testing.assert_close(loss, expected)
    mine, theirs = (torch.autograd.grad(made, list(leaves.values()), allow_unused=True) for made in (loss, expected))
    for name, ours, other in zip(leaves, mine, theirs, strict=True):
        assert ours is not None, name
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("own", [False, True])
def test_attention_and_its_gradients_are_those_of_autograd(own: bool) -> None:
    states, mask = words()
    values, rows = torch.randn(N_TEXTS, N_WORDS, 4), torch.randn(*([N_TEXTS] if own else []), 9, WIDTH)
    leaves = [part.requires_grad_() for part in (states, values, rows)]
    logits = (states @ rows.mT).masked_fill(~mask[..., None], -torch.inf)
    expected = logits.softmax(1).mT @ values
    upper = torch.randn(expected.shape)
    with torch.no_grad():
        read = Words(states, values, mask)
        attention, found = read.attend(rows)
        gradients = read.gradients(rows, attention, found, upper)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(attention.sum(1), torch.ones(N_TEXTS, 9))
    assert (attention[~mask] == 0).all()
    for mine, theirs in zip(gradients, torch.autograd.grad(expected, leaves, upper), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@every_shape
def test_loss_and_gradients_are_those_of_plain_torch(shape: str) -> None:
    head, (states, mask) = a_head(shape), words()
    states.requires_grad_()
    wanted = targets(head)
    dense = wanted.dense(N_LABELS)
    expected = F.binary_cross_entropy_with_logits(reference(head, states, mask), dense, reduction="sum") / N_TEXTS
    compare(head, head.loss(HeadInputs(states, mask=mask), wanted), expected, states)
    with torch.no_grad():
        torch.testing.assert_close(head.loss(HeadInputs(states, mask=mask), wanted), expected)


@every_shape
def test_the_best_labels_are_those_of_plain_torch(shape: str) -> None:
    head, (states, mask) = a_head(shape), words()
    scores, places = head.top_k(HeadInputs(states, mask=mask), N_LABELS)
    expected = reference(head, states, mask).sigmoid()
    assert (scores.diff(dim=1) <= 0).all()
    torch.testing.assert_close(scores, expected.gather(1, places))
    assert all(sorted(row) == list(range(N_LABELS)) for row in places.tolist())
    some = head.top_k(HeadInputs(states, mask=mask), 4)
    assert torch.equal(some[1], places[:, :4])


def test_equal_labels_come_in_their_order() -> None:
    head, (states, mask) = a_head("one layer"), words()
    for parameter in head.parameters():
        parameter.data.zero_()
    assert head.top_k(HeadInputs(states, mask=mask), N_LABELS)[1].tolist() == [list(range(N_LABELS))] * N_TEXTS


@every_shape
def test_padding_changes_nothing(shape: str) -> None:
    head, (states, mask) = a_head(shape), words()
    more = F.pad(states, (0, 0, 0, 4)).requires_grad_(), F.pad(mask, (0, 4))
    states.requires_grad_()
    loss, wider = (head.loss(HeadInputs(given, mask=real), targets(head)) for given, real in ((states, mask), more))
    torch.testing.assert_close(wider, loss)
    mine, theirs = torch.autograd.grad(wider, more[0])[0], torch.autograd.grad(loss, states)[0]
    torch.testing.assert_close(mine[:, :N_WORDS], theirs, rtol=1e-4, atol=1e-6)
    assert (mine[:, N_WORDS:] == 0).all()
    torch.testing.assert_close(
        head.top_k(HeadInputs(more[0], mask=more[1]), 5)[0], head.top_k(HeadInputs(states, mask=mask), 5)[0]
    )


@every_shape
def test_a_text_alone_gets_what_it_gets_among_others(shape: str) -> None:
    head, (states, mask) = a_head(shape), words()
    scores, places = head.top_k(HeadInputs(states, mask=mask), 6)
    for text in range(N_TEXTS):
        own = states[text : text + 1, : LENGTHS[text]]
        alone = head.top_k(HeadInputs(own), 6)
        torch.testing.assert_close(alone[0][0], scores[text])
        assert torch.equal(alone[1][0], places[text])


def test_a_text_without_words_gives_numbers() -> None:
    head, (states, mask) = a_head("one layer"), words()
    mask[2] = False
    states = (states * mask[..., None]).requires_grad_()
    loss = head.loss(HeadInputs(states, mask=mask), targets(head))
    (gradient,) = torch.autograd.grad(loss, states)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
    assert torch.isfinite(head.top_k(HeadInputs(states, mask=mask), 3)[0]).all()


def test_micro_batches_add_up_to_the_batch() -> None:
    head, (states, mask) = a_head("outputs of their own"), words()
    wanted = targets(head)
    whole = torch.autograd.grad(head.loss(HeadInputs(states, mask=mask), wanted), [*head.parameters()])
    parts = [
        torch.autograd.grad(
            head.loss(HeadInputs(states[at : at + n], mask=mask[at : at + n]), wanted.part(at, at + n), n / N_TEXTS),
            [*head.parameters()],
        )
        for at, n in ((0, 2), (2, 3))
    ]
    for all_of_it, one, two in zip(whole, *parts, strict=True):
        torch.testing.assert_close(one + two, all_of_it, rtol=1e-4, atol=1e-6)


def test_half_precision_stays_near_full_precision() -> None:
    head, (states, mask) = a_head("two layers"), words()
    for parameter in head.parameters():
        parameter.data *= 0.5
    states.requires_grad_()
    loss = head.loss(HeadInputs(states, mask=mask), targets(head))
    with torch.autocast("cpu", torch.bfloat16):
        halved = head.loss(HeadInputs(states, mask=mask), targets(head))
        scores, _ = head.top_k(HeadInputs(states, mask=mask), N_LABELS)
    torch.testing.assert_close(halved, loss, rtol=0.02, atol=0.02)
    torch.testing.assert_close(scores, head.top_k(HeadInputs(states, mask=mask), N_LABELS)[0], rtol=0.05, atol=0.02)
    mine, theirs = (torch.autograd.grad(made, states)[0] for made in (halved, loss))
    assert F.cosine_similarity(mine.flatten(), theirs.flatten(), 0) > 0.99


def test_a_label_begins_with_its_log_odds() -> None:
    head = Labelwise(WIDTH, 3)
    head.init_from_labels(LabelMatrix.from_lists([[0], [0, 1], [0], []], 3))
    assert head.bias is not None
    expected = [(3.5 / 5) / (1.5 / 5), (1.5 / 5) / (3.5 / 5), (0.5 / 5) / (4.5 / 5)]
    torch.testing.assert_close(head.bias.exp().detach(), torch.tensor(expected))


def test_rows_and_what_labels_share_learn_at_rates_of_their_own() -> None:
    head = a_head("outputs of their own")
    groups = {name: head.group_of(name) for name, _ in head.named_parameters()}
    assert {name for name, group in groups.items() if group == "head"} == {"rows", "outputs", "bias"}
    assert {group for name, group in groups.items() if name.startswith("shared.")} == {"bottleneck"}


PARENT = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 0, 0, 1, 2, 3, 4], np.int32)  # of 6 to 3 labels
FIXED = np.array([[2, 4], [1, 0], [3, -1], [4, 2], [-1, -1]], np.int32)
CHOSEN = [{3, 4}, {1, 0}, {0, 3}, {3, 1, 2, 0}, {2}]
"""The clusters of a text's labels; the others up to two, those found first."""


def within(shape: str) -> LabelwiseWithin:
    index = LabelIndex((np.zeros(5, np.int32), PARENT))
    head = shaken(LabelwiseWithin(WIDTH, index, LabelwiseOptions(**SHAPES[shape])))
    head.fix_candidates(FIXED)
    return head


def test_texts_are_trained_on_their_own_clusters_and_on_the_best_of_others() -> None:
    """The fourth has labels in four clusters, more than are filled up to; the last no other cluster than its own."""
    head = within("one layer")
    chosen = head.choose(targets(head), torch.device("cpu"))
    assert chosen.valid is not None
    found = [
        {c for c, v in zip(*row, strict=True) if v}
        for row in zip(chosen.clusters.tolist(), chosen.valid.tolist(), strict=True)
    ]
    assert found == CHOSEN


@every_shape
def test_loss_and_gradients_within_clusters_are_those_of_plain_torch(shape: str) -> None:
    head, (states, mask) = within(shape), words()
    states.requires_grad_()
    wanted = targets(head)
    counted = torch.zeros(N_TEXTS, len(head.order))
    for text, clusters in enumerate(CHOSEN):
        counted[text] = torch.from_numpy(
            (head.order >= 0) & np.isin(np.arange(len(head.order)) // head.size, [*clusters])
        )
    dense = wanted.dense(len(head.order))
    assert (dense <= counted).all()
    each = F.binary_cross_entropy_with_logits(reference(head, states, mask), dense, reduction="none")
    compare(head, head.loss(HeadInputs(states, mask=mask), wanted), (each * counted).sum() / N_TEXTS, states)


@pytest.mark.parametrize("make", [a_head, within])
def test_a_mean_over_labels_has_the_gradient_of_the_sum_divided_by_what_is_scored(make: Any) -> None:
    found = {}
    for reduction in ("sum", "mean"):
        head, (states, mask) = make("one layer"), words()
        head.options = head.options.model_copy(update={"reduction": reduction})
        states.requires_grad_()
        loss = head.loss(HeadInputs(states, mask=mask), targets(head))
        found[reduction] = [loss.detach(), *torch.autograd.grad(loss, [states, head.rows, head.shared.last.weight])]
    n_scored = N_LABELS if make is a_head else 4 * within("one layer").size  # clusters of the text with most, padded
    for mean, total in zip(found["mean"], found["sum"], strict=True):
        torch.testing.assert_close(mean, total / n_scored)


@every_shape
def test_labels_are_ranked_within_clusters_by_both_scores(shape: str) -> None:
    head, (states, mask) = within(shape), words()
    clusters = torch.tensor([[0, 3], [4, 1], [2, 0], [1, 0], [3, 0]])
    above = torch.tensor([[-0.1, -2.0], [-0.5, -0.6], [-0.2, -torch.inf], [-1.0, -1.5], [0.0, -3.0]])
    inputs = HeadInputs(states, mask=mask, clusters=clusters, log_scores=above)
    logs, places = head.ranked(inputs, 14)
    own = F.logsigmoid(reference(head, states, mask)).detach()
    for text in range(N_TEXTS):
        expected = {
            int(place): float(own[text, place] + score)
            for cluster, score in zip(clusters[text].tolist(), above[text].tolist(), strict=True)
            for place in range(cluster * head.size, (cluster + 1) * head.size)
            if head.order[place] >= 0 and score > -np.inf
        }
        found = dict(zip(places[text].tolist(), logs[text].tolist(), strict=True))
        assert found.pop(-1, -np.inf) == -np.inf
        assert found.keys() == expected.keys()
        assert [*found.values()] == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-4)
        assert all(found[place] == pytest.approx(expected[place], abs=1e-4) for place in found)


def test_a_label_within_clusters_begins_with_its_odds_among_texts_that_have_the_cluster() -> None:
    head = within("one layer")
    labels = LabelMatrix.from_lists(LISTS, N_LABELS).renumber(positions(head.order, N_LABELS), len(head.order))
    head.init_from_labels(labels)
    assert head.bias is not None
    place = positions(head.order, N_LABELS)
    # Cluster 3 is a candidate of the first, the third and (as one of its labels') the fourth text; label 3 of two.
    assert float(head.bias[place[3]].detach()) == pytest.approx(np.log((2.5 / 4) / (1.5 / 4)))
    assert float(head.bias[place[8]].detach()) == pytest.approx(np.log((0.5 / 4) / (3.5 / 4)))


@pytest.mark.parametrize("wrong", [np.array([0, 1]), np.array([[5]]), np.array([[-2]]), np.empty((0, 2), int)])
def test_candidates_that_are_no_clusters_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="clusters 0 to 4, one row per text"):
        within("one layer").fix_candidates(wrong)


def test_training_without_candidates_is_refused() -> None:
    head = within("one layer")
    head.fixed = None
    states, mask = words()
    with pytest.raises(ValueError, match="use fix_candidates"):
        head.loss(HeadInputs(states, mask=mask), targets(head))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("make", [a_head, within])
def test_a_gpu_in_mixed_precision_gives_nearly_the_same(make: Any) -> None:
    head, (states, mask) = make("two layers"), words()
    for parameter in head.parameters():
        parameter.data *= 0.5
    wanted = targets(head)
    leaves = [states.requires_grad_(), *head.parameters()]
    expected = head.loss(HeadInputs(states, mask=mask), wanted)
    theirs = torch.autograd.grad(expected, leaves)
    head, there, mask = head.cuda(), states.detach().cuda().requires_grad_(), mask.cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = head.loss(HeadInputs(there, mask=mask), wanted.to(torch.device("cuda")))
    torch.testing.assert_close(loss.cpu(), expected, rtol=0.02, atol=0.02)
    for mine, other in zip(torch.autograd.grad(loss, [there, *head.parameters()]), theirs, strict=True):
        assert F.cosine_similarity(mine.cpu().flatten(), other.flatten(), 0) > 0.98
