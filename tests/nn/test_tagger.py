"""A network with its tokeniser: texts in, labels out, by a tiny pretrained encoder."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from longtail.labels.buckets import BucketOptions, build_buckets
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.tagger import NetworkPlan, Tagger
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL, LabelMatrix

WORDS = [f"word{label}{letter}" for label in range(20) for letter in "abc"]
QUICK: dict[str, Any] = {"n_steps": 3, "batch_size": 8, "rate": 1e-2, "decay": 0.0, "averaging": {"kind": "none"}}
ONE = Run(LocalEngine(1))


def table(texts: list[str]) -> TextReadings:
    return TextReadings(pa.table({"text": pa.array(texts, pa.string())}))


def labels_of(n_texts: int, n_labels: int = 4) -> LabelMatrix:
    return LabelMatrix.from_lists([[number % n_labels] for number in range(n_texts)], n_labels)


@pytest.fixture
def fit(tiny_encoder: Path) -> Any:
    """Fits a tagger: `fit(texts, make_head, max_tokens=9, n_steps=5)`."""

    def fitted(texts: list[str], make_head: Any = None, max_tokens: int = 62, start: Any = None, **more: Any) -> Tagger:
        encoder = TransformerOptions.of(
            {"model": str(tiny_encoder), "pooling": "mean", "dropout": 0.0, "tokens": {"max_tokens": max_tokens}}
        )
        plan = NetworkPlan(encoder, TrainingOptions.of({**QUICK, **more}))
        make_head = make_head or (lambda width: Dense(width, 4))
        return Tagger.fit(table(texts), labels_of(len(texts)), plan, make_head, run=ONE, start=start)

    return fitted


def adaptive(width: int) -> Head:
    return Adaptive(width, build_buckets(np.array([1, 9, 3, 5]), BucketOptions()), AdaptiveOptions(dropout=0.0))


@pytest.mark.parametrize("make_head", [None, adaptive])
def test_labels_are_found_whatever_order_the_head_has_them_in(fit: Any, make_head: Any) -> None:
    texts = [f"word{number % 4}a noise{number % 7}" for number in range(24)]
    tagger = fit(texts, make_head, n_steps=40, head_rate=2e-2, bottleneck_rate=1e-2)
    found = tagger.top_k(table([f"word{label}a" for label in (2, 0, 3, 1)]), 6, ONE)
    assert found.labels[:, 0].tolist() == [2, 0, 3, 1]
    assert (found.labels[:, 4:] == NO_LABEL).all()
    assert all(sorted(row) == [0, 1, 2, 3] for row in found.labels[:, :4].tolist())


def test_answers_stand_in_the_order_of_the_texts(fit: Any) -> None:
    """Texts are sorted by length and cut into many batches on the way."""
    tagger = fit(["word1a", "word2a", "word3a", "word0a"])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 60))) for _ in range(400)]
    together, vectors = tagger.top_k(table(texts), 3, ONE), tagger.vectors(table(texts), ONE)
    assert vectors.shape == (400, 32)
    for row in range(0, 400, 37):
        alone = tagger.top_k(table([texts[row]]), 3, ONE)
        assert alone.labels[0].tolist() == together.labels[row].tolist()
        assert np.allclose(alone.scores[0], together.scores[row], atol=1e-5)
        assert np.allclose(tagger.vectors(table([texts[row]]), ONE)[0], vectors[row], atol=1e-5)


def test_texts_that_are_too_long_are_cut_counted_and_told_once(fit: Any, caplog: pytest.LogCaptureFixture) -> None:
    texts = ["word1a " * n for n in (3, 9, 10, 11, 100, 4, 5, 6)]
    with caplog.at_level(logging.WARNING, "longtail"):
        tagger = fit(texts, max_tokens=12)
    assert [record.getMessage() for record in caplog.records] == [
        "25.00% of the texts are longer than 12 tokens (encoder.tokens.max_tokens, or the encoder's own limit) and are "
        "cut there"
    ]
    assert tagger.facts["cut"] == 0.25
    caplog.clear()
    with caplog.at_level(logging.WARNING, "longtail"):
        assert fit(texts[:3], max_tokens=12).facts["cut"] == 0
        tagger.top_k(table(texts), 1, ONE)
    assert not caplog.records


def test_the_longest_texts_fit_into_the_encoders_positions(fit: Any) -> None:
    """It has 62, which no round number of tokens is."""
    texts = ["word1a " * n for n in (57, 58, 59, 60, 61, 200, 1, 2)]
    tagger = fit(texts, max_tokens=512, batch_size=4)
    assert np.isfinite(tagger.top_k(table(texts), 2, ONE).scores).all()
    assert np.isfinite(tagger.vectors(table(texts), ONE)).all()


def test_empty_and_unknown_texts_are_trained_on_and_answered(fit: Any) -> None:
    tagger = fit(["", "word1a", "never seen", ""])
    assert np.isfinite(tagger.top_k(table(["", "nowhere", ""]), 4, ONE).scores).all()
    assert tagger.top_k(table([]), 4, ONE).labels.shape == (0, 4)
    assert tagger.vectors(table([]), ONE).shape == (0, 32)


def test_validation_texts_are_never_trained_on(fit: Any) -> None:
    """Each text has a word of its own: the vector of a word that no training text has stays as it was."""
    ids = {word: 5 + number for number, word in enumerate(WORDS)}

    def unchanged(n_steps: int, **more: Any) -> int:
        before, after = (
            fit(WORDS, n_steps=n, **more).network.encoder.model.embeddings.word_embeddings.weight for n in (1, n_steps)
        )
        fresh = fit(WORDS, n_steps=1, rate=1e-30, **more).network.encoder.model.embeddings.word_embeddings.weight
        assert not torch.equal(before, after)
        return sum(torch.equal(fresh[i], after[i]) for i in ids.values())

    assert unchanged(15) == 0  # two readings of sixty texts
    assert unchanged(15, validation=0.25, validations=1) == 15


def test_validation_takes_its_share_and_is_written_down(fit: Any) -> None:
    tagger = fit(WORDS, n_steps=8, validation=0.1, validations=4)
    assert [entry["step"] for entry in tagger.facts["validation"]] == [2, 4, 6, 8]
    assert all(0 <= entry["score"] <= 1 for entry in tagger.facts["validation"])
    assert tagger.facts["best_step"] in (2, 4, 6, 8)


@pytest.mark.parametrize("n_texts", [1, 2, 3])
def test_very_few_texts_are_enough_even_with_validation(fit: Any, n_texts: int) -> None:
    tagger = fit(WORDS[:n_texts], validation=0.5)
    assert tagger.facts["n_steps"] == 3


def test_training_may_begin_with_another_encoder(fit: Any) -> None:
    one = fit(WORDS, n_steps=10)
    two = fit(WORDS, n_steps=1, rate=1e-30, start=one)
    mine, other = one.network.encoder.state_dict(), two.network.encoder.state_dict()
    assert all(torch.allclose(mine[name], other[name], atol=1e-9) for name in mine)


@pytest.mark.parametrize("make_head", [None, adaptive])
def test_a_saved_tagger_is_the_same_without_the_encoders_folder(fit: Any, make_head: Any, tmp_path: Path) -> None:
    tagger = fit(WORDS, make_head)
    with write_folder(tmp_path / "t", "test") as writer:
        tagger.save(writer, "network")
    opened = Tagger.load(Folder(tmp_path / "t", "test"), "network", make_head or (lambda width: Dense(width, 4)))
    texts = table(["word1a word2b", "", "word3c " * 90])
    assert np.array_equal(opened.vectors(texts, ONE), tagger.vectors(texts, ONE))
    mine, other = opened.top_k(texts, 4, ONE), tagger.top_k(texts, 4, ONE)
    assert np.array_equal(mine.labels, other.labels)
    assert mine.scores.tobytes() == other.scores.tobytes()
    assert opened.facts == tagger.facts
    assert not any(value.requires_grad for value in opened.network.parameters())


def test_what_was_drawn_and_the_number_of_threads_stay_as_they_were(fit: Any) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    fit(["word1a", "word2a"]).top_k(table(["word1a"]), 1, Run(LocalEngine(2)))
    assert torch.get_num_threads() == 1
    assert torch.equal(torch.rand(3), wanted)


def test_a_training_does_not_depend_on_what_other_threads_compute(fit: Any) -> None:
    texts = [f"word{label}a word{label}b" for label in range(20)]
    alone = fit(texts, n_steps=20).network.state_dict()
    with ThreadPoolExecutor(2) as pool:
        beside = pool.submit(fit, texts[::-1], n_steps=30)
        predicted = pool.submit(lambda: [fit(texts[:4], n_steps=5).vectors(table(texts), ONE) for _ in range(3)])
        state = fit(texts, n_steps=20).network.state_dict()
        beside.result(), predicted.result()
    assert all(torch.equal(state[name], alone[name]) for name in alone)
