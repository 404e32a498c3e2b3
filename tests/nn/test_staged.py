"""Recall and rank trained one after the other, by a tiny pretrained encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError
from longtail.labels.index import LabelIndex
from longtail.methods import create_method
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shortlist import ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.prediction import top_k_of
from longtail.nn.staged import Scoring
from longtail.nn.tagger import NetworkPlan, Tagger, split_rows
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.readings import TextReadings

from .sameness import equal, same_lists
from .stopping import Counted, Stopped

N_LABELS, N_CLUSTERS, N_RANKED, SEED = 12, 6, 3, 3
INDEX = LabelIndex((np.zeros(N_CLUSTERS, np.int32), np.arange(N_LABELS, dtype=np.int32) % N_CLUSTERS))
TRAINING = {"rate": 1e-3, "head_rate": 1e-1, "epochs": 12, "batch_size": 16, "averaging": {"kind": "none"}}
FEW = {"n_steps": 6, "epochs": 1}
ONE = Run(LocalEngine(1))
KINDS = ["static", "frozen"]


def scoring(kind: Any, **more: Any) -> Scoring:
    shortlist = ShortlistOptions(n_clusters_ranked=N_RANKED, bottleneck_width=16)
    return replace(Scoring(N_LABELS, INDEX, kind, shortlist, LabelTableOptions()), **more)


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=80, n_labels=N_LABELS)


@pytest.fixture(scope="module")
def given(data: Dataset, tiny_encoder: Path) -> Callable[..., NetworkPlan]:
    """How networks are trained: `given(validation=0.1)`."""
    tokens = {"max_tokens": 32}
    encoder = TransformerOptions.of({"model": str(tiny_encoder), "pooling": "mean", "tokens": tokens})
    return lambda **more: NetworkPlan(encoder, TrainingOptions.of({**TRAINING, **more}), 0.1, SEED)


@pytest.fixture(scope="module")
def fit(data: Dataset, given: Any) -> Callable[..., Tagger]:
    """Trains in stages, each way once: `fit("static", n_steps=3)`."""

    @cache
    def fitted(kind: str, run: Run = ONE, **more: Any) -> Tagger:
        return scoring(kind).fit(TextReadings(data.train.texts), data.train.labels, given(**more), run)

    return fitted


@pytest.fixture(scope="module")
def fit_recall(data: Dataset, given: Any) -> Callable[..., Tagger]:
    """Trains the first stage alone."""

    @cache
    def fitted(**more: Any) -> Tagger:
        clusters = data.train.labels.renumber(INDEX.parents[-1], N_CLUSTERS)
        texts = TextReadings(data.train.texts)
        return Tagger.fit(texts, clusters, given(**more), lambda width: Dense(width, N_CLUSTERS), run=ONE)

    return fitted


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_learned_is_learned(kind: str, fit: Any, data: Dataset) -> None:
    found = fit(kind).top_k(TextReadings(data.test.texts), 1, ONE)
    assert np.mean([found.labels[row, 0] in data.test.labels[row] for row in range(80)]) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_one_gives_the_same_bit_for_bit(kind: str, fit: Any, data: Dataset, tmp_path: Path) -> None:
    tagger = fit(kind)
    with write_folder(tmp_path / "t", "test") as writer:
        tagger.save(writer, "network")
    opened = scoring(kind).load(Folder(tmp_path / "t", "test"), "network")
    assert equal(opened.network, tagger.network)
    assert same_lists(opened, tagger, data.test.texts)
    assert opened.facts == tagger.facts
    assert tagger.facts["recall"]["n_steps"] == tagger.facts["n_steps"] == 60


def test_a_frozen_encoder_is_that_of_the_recall_and_a_static_one_learned_on(fit: Any, fit_recall: Any) -> None:
    recall, static, frozen = fit_recall().network, fit("static").network, fit("frozen").network
    assert equal(frozen.encoder, recall.encoder)
    assert equal(static.recaller, recall.encoder)
    assert not equal(static.encoder, recall.encoder)
    for made in (static, frozen):
        assert equal(made.head.recall, recall.head.table)


def test_a_static_one_recalls_with_the_first_encoder_and_ranks_with_the_second(
    fit: Any, fit_recall: Any, data: Dataset
) -> None:
    tagger, texts = fit("static"), TextReadings(data.test.texts)
    found, clusters = tagger.top_k(texts, N_LABELS, ONE), fit_recall().top_k(texts, N_RANKED, ONE)
    head, vectors = tagger.network.head, torch.from_numpy(tagger.vectors(texts, ONE))
    rank = (head.bottleneck(vectors) @ head.rank.weight.T + head.rank.bias).sigmoid().detach().numpy()
    place = {int(label): place for place, label in enumerate(head.order) if label >= 0}
    for row in range(len(texts)):
        share = dict(zip(clusters.labels[row].tolist(), clusters.scores[row].tolist(), strict=True))
        labels = found.labels[row][found.labels[row] >= 0]
        assert sorted(labels.tolist()) == [label for label in range(N_LABELS) if label % N_CLUSTERS in share]
        expected = [share[label % N_CLUSTERS] * rank[row, place[label]] for label in labels.tolist()]
        assert np.allclose(found.scores[row, : len(labels)], expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_texts_are_trained_on_the_candidates_of_the_trained_recall(
    kind: str, validation: float, fit: Any, fit_recall: Any, data: Dataset
) -> None:
    more: dict[str, Any] = {"validation": validation, "validations": 2} if validation else {}
    fixed = fit(kind, **more).network.head.fixed
    expected = fit_recall(**more).top_k(TextReadings(data.train.texts), N_RANKED, ONE).labels
    kept, held = split_rows(80, TrainingOptions(validation=validation), SEED)
    assert len(held) == 80 * validation
    assert len(np.unique(expected, axis=0)) > 20
    assert np.array_equal(fixed, expected[kept])


@pytest.mark.parametrize("kind", KINDS)
def test_each_training_is_validated_by_what_it_learns(kind: str, fit: Any) -> None:
    """With labels that are ranked at random the recall's score would be near chance, and so would the other's."""
    facts = fit(kind, validation=0.25, validations=2).facts
    assert [entry["step"] for entry in facts["recall"]["validation"]] == [23, 45]
    assert facts["recall"]["validation"][-1]["score"] > 0.8
    assert facts["validation"][-1]["score"] > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_network(kind: str, fit: Any) -> None:
    one, two = (fit(kind, Run(LocalEngine(1)), **FEW).network for _ in range(2))
    assert one is not two
    assert equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", [4, 9])
def test_a_stopped_run_goes_on_in_its_stage(
    kind: str, last: int, data: Dataset, given: Any, fit: Any, tmp_path: Path
) -> None:
    """It stops in the first or in the second training of six steps; the step that it stops in is lost."""

    def run(progress: Counted, resume: bool) -> Tagger:
        stages = FolderStages.open(tmp_path / "work", {"kind": kind}, resume)
        often, texts = given(**FEW, checkpoint_s=1e-9), TextReadings(data.train.texts)
        return scoring(kind).fit(texts, data.train.labels, often, Run(LocalEngine(1), progress, stages))

    with pytest.raises(Stopped):
        run(Counted(last), resume=False)
    assert (tmp_path / "work" / "candidates").is_dir() == (last > 6)
    rest = Counted()
    again = run(rest, resume=True)
    assert rest.n == 12 - (last - 1)
    assert equal(again.network, fit(kind, **FEW).network)


def test_a_copy_in_bfloat16_finds_nearly_the_same(fit: Any, data: Dataset) -> None:
    for kind in KINDS:
        tagger = fit(kind)
        halved = tagger.network.quantised("bf16")
        assert {parameter.dtype for parameter in halved.encoder.parameters()} == {torch.bfloat16}
        assert halved.head is tagger.network.head
        found = top_k_of(halved, tagger.tokens(TextReadings(data.test.texts), ONE), 1)
        assert np.mean(found.labels == tagger.top_k(TextReadings(data.test.texts), 1, ONE).labels) > 0.9


def test_where_every_label_is_scored_there_is_one_training(data: Dataset, given: Any) -> None:
    every = scoring("dynamic", index=None)
    tagger = every.fit(TextReadings(data.train.texts), data.train.labels, given(**FEW), ONE)
    assert isinstance(tagger.network.head, Dense)
    assert "recall" not in tagger.facts
    assert (every.n_trainings, scoring("static").n_trainings, scoring("frozen").n_trainings) == (1, 2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_method_refuses_fixed_negatives_where_every_label_is_scored(kind: str, data: Dataset) -> None:
    with pytest.raises(ConfigError, match=rf"negatives '{kind}' .* dense_up_to .*50,000.* got 12.* lower dense_up_to"):
        create_method("lightxml", {"negatives": kind}).check(data.train)
    create_method("lightxml", {"negatives": kind, "dense_up_to": 11}).check(data.train)
    create_method("lightxml").check(data.train)
