"""Labels scored within recalled clusters, beside plain dense layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from longtail.errors import ConfigError
from longtail.kernels.reference.beam import log_score
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Batch, Targets
from longtail.nn.heads.base import HeadInputs, LabelSpace, Step
from longtail.nn.heads.dense_candidates import DenseCandidates
from longtail.nn.heads.table import LabelTableOptions
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

WIDTH, N_LABELS = 5, 9
PARENT = np.array([0, 1, 2, 3, 0, 1, 2, 3, 3], np.int32)
INDEX = LabelIndex((np.zeros(4, np.int32), PARENT))
TEXTS = [[0, 3], [], [3, 5, 6], [1]]
CLUSTERS = torch.tensor([[1, 2], [3, -1], [0, 1], [1, 0]])
LOGS = torch.tensor([[-0.1, -0.7], [-0.2, 0.0], [0.0, -2.0], [-0.5, -0.5]])
COUNTS = [[2.0, 1.0], [], [3.0, 1.0, 2.0], [1.0]]


def targets(rows: Any = range(4)) -> Targets:
    return Targets.of(LabelMatrix.from_lists(TEXTS, N_LABELS), np.array(rows))


def vectors_of(seed: int, n: int = 4) -> Tensor:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(seed))


def a_head(loss: Any = "squared_hinge", chunk: int = 4) -> DenseCandidates:
    torch.manual_seed(0)
    head = DenseCandidates(WIDTH, INDEX, LabelTableOptions(chunk=chunk, optimizer="sgd", momentum=0.0), loss)
    head.table.bias.data.normal_()
    return head


def label_counts() -> sp.csr_matrix:
    matrix = LabelMatrix.from_lists(TEXTS, N_LABELS)
    return sp.csr_matrix((np.float32(np.concatenate(COUNTS)), matrix.indices, matrix.indptr), shape=(4, N_LABELS))


def candidates(clusters: Tensor | None) -> Tensor:
    """Which labels each text counts for, (4, N_LABELS)."""
    if clusters is None:
        return torch.ones(4, N_LABELS)
    chosen = [set(row) | {PARENT[label] for label in own} for row, own in zip(clusters.tolist(), TEXTS, strict=True)]
    return torch.tensor([[float(parent in own) for parent in PARENT] for own in chosen])


@pytest.mark.parametrize("loss", ["squared_hinge", "bce"])
@pytest.mark.parametrize("clusters", [CLUSTERS, None], ids=["recalled", "all"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk", [2, 9])
def test_the_loss_is_a_sum_over_candidates_with_positives_as_often_as_they_count(
    loss: str, clusters: Tensor | None, weighted: bool, chunk: int
) -> None:
    head, vectors = a_head(loss, chunk), vectors_of(1).requires_grad_()
    if weighted:
        head.weigh(label_counts())
    value = head.loss(HeadInputs(vectors, clusters=clusters), targets(), show=True)
    value.backward()
    leaf, weight, bias = (part.detach().clone().requires_grad_() for part in (vectors, *head.table.parameters()))
    logits, right = leaf @ weight.T + bias, targets().dense(N_LABELS)
    sign = 2 * right - 1
    each = (1 - sign * logits).clamp(min=0) ** 2 if loss == "squared_hinge" else -(sign * logits).sigmoid().log()
    counts = torch.from_numpy(label_counts().toarray()) + (1 - right) if weighted else torch.ones(4, N_LABELS)
    plain = (each * counts * candidates(clusters)).sum() / 4
    plain.backward()
    assert value.item() == pytest.approx(plain.item(), rel=1e-5)
    assert torch.allclose(vectors.grad, leaf.grad, atol=1e-5)
    head.step(Step({"head": 1.0}))
    assert torch.allclose(weight.detach() - head.table.weight, weight.grad, atol=1e-5)
    assert torch.allclose(bias.detach() - head.table.bias, bias.grad, atol=1e-5)


def test_counts_follow_the_texts_of_a_batch() -> None:
    head, vectors = a_head(), vectors_of(1)
    head.weigh(label_counts())

    def of(rows: list[int]) -> float:
        loss = head.loss(HeadInputs(vectors[rows], clusters=CLUSTERS[rows]), targets(rows), show=True)
        return float(loss) * len(rows)

    assert of([2, 0]) + of([3, 1]) == pytest.approx(of([0, 1, 2, 3]), rel=1e-5)
    with torch.no_grad():  # validation texts have no counts
        assert of([2]) < of([2, 1])


@pytest.mark.parametrize("loss", ["squared_hinge", "bce"])
@torch.no_grad()
def test_the_best_labels_are_those_of_recalled_clusters_by_both_scores(loss: str) -> None:
    head, vectors = a_head(loss), vectors_of(2)
    head.table.bias.data += 1  # some margins are above 1, where scores are saturated
    scores, labels = head.top_k(HeadInputs(vectors, clusters=CLUSTERS, log_scores=LOGS), 5)
    margins = (vectors @ head.table.weight.T + head.table.bias).numpy()
    for text, (clusters, logs) in enumerate(zip(CLUSTERS.tolist(), LOGS.tolist(), strict=True)):
        above = dict(zip(clusters, logs, strict=True))
        own = log_score(margins[text], 3 if loss == "squared_hinge" else 0)
        ranked = sorted((-(own[at] + above[p]), at) for at, p in enumerate(PARENT) if p in above)[:5]
        n = len(ranked)
        assert labels[text, :n].tolist() == [label for _, label in ranked]
        np.testing.assert_allclose(scores[text, :n], np.exp([-score for score, _ in ranked]), rtol=1e-4)
        assert (labels[text, n:] == -1).all()
        assert torch.isneginf(scores[text, n:]).all()


@torch.no_grad()
def test_without_clusters_all_labels_may_be_found() -> None:
    head, vectors = a_head(), vectors_of(2)
    _, labels = head.top_k(HeadInputs(vectors), N_LABELS)
    margins = vectors @ head.table.weight.T + head.table.bias
    assert torch.equal(labels, margins.argsort(dim=1, descending=True))


def test_rows_that_were_given_are_not_drawn_from_frequencies() -> None:
    head, places = a_head(), LabelMatrix.from_lists(TEXTS, N_LABELS)
    head.init_from_labels(places)
    assert (head.table.bias == -1).all()
    weight, bias = vectors_of(3, N_LABELS), torch.arange(N_LABELS).float()
    head.start(weight, bias)
    head.init_from_labels(places)
    assert torch.equal(head.table.weight, weight)
    assert torch.equal(head.table.bias, bias)


def test_a_softmax_over_candidates_is_refused() -> None:
    with pytest.raises(ConfigError, match="bce or squared_hinge"):
        a_head("softmax")


def test_a_head_is_made_from_a_label_space() -> None:
    head = DenseCandidates.create(WIDTH, LabelSpace(N_LABELS, index=INDEX))
    assert (head.n_labels, head.n_clusters, head.table.loss_kind) == (N_LABELS, 4, "bce")


@pytest.mark.parametrize("packed", [False, True])
def test_recalled_clusters_travel_with_their_texts(packed: bool) -> None:
    rng = np.random.default_rng(0)
    tokens = TokenRows(
        np.arange(10, dtype=np.int32),
        np.array([0, 2, 5, 6, 10]),
        clusters=rng.integers(-1, 4, (4, 2)).astype(np.int32),
        log_scores=rng.random((4, 2)).astype(np.float32),
    )
    rows = np.array([3, 0, 2])
    own, labels = tokens.take(rows), LabelMatrix.from_lists(TEXTS, N_LABELS)
    whole = Batch.packed(own, np.array([2, 0, 1]), 8, labels) if packed else Batch.of(own, np.array([2, 0, 1]), 8, 0)
    for batch, texts in ((whole, [2, 3, 0]), (whole.part(1, 3).to(torch.device("cpu")), [3, 0])):
        assert batch.clusters is not None
        assert batch.log_scores is not None
        assert batch.clusters.tolist() == tokens.clusters[texts].tolist()
        assert np.array_equal(batch.log_scores.numpy(), tokens.log_scores[texts])
