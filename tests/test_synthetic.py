"""Data that are drawn at random for benchmarks: as many as asked for, the same each time, and worth learning."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import Dataset, load_dataset
from longtail.methods import create_method

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("synthetic")


def drawn(synthetic: Any, folder: Path, seed: int = 0) -> Dataset:
    synthetic.write(synthetic.SHAPES["amazon-3m"].of_share(0.001), folder, seed)
    return load_dataset(folder)


def test_counts_are_those_of_the_share(synthetic: Any, tmp_path: Path) -> None:
    train = drawn(synthetic, tmp_path / "data").train
    assert len(train) == 1718
    assert train.labels.n_seen() == train.labels.n_labels == 2812  # each label occurs
    assert len(train.labels.indices) / len(train) == pytest.approx(36.0, rel=0.03)
    assert train.features.nnz / len(train) == pytest.approx(84.6e6 / 1_717_899, rel=0.03)
    norms = train.features.multiply(train.features).sum(axis=1)
    assert np.allclose(norms, 1, atol=1e-5)


def test_the_whole_shapes_have_the_counts_of_the_data_sets(synthetic: Any) -> None:
    for shape, counts in {"amazon-3m": (1_717_899, 2_812_281), "wiki-500k": (1_779_881, 501_070)}.items():
        whole = synthetic.SHAPES[shape].of_share(1.0)
        assert (whole.n_texts, whole.n_labels) == counts
        assert whole == synthetic.SHAPES[shape]


def test_a_seed_gives_the_same_files_and_another_one_others(synthetic: Any, tmp_path: Path) -> None:
    first, again, other = (drawn(synthetic, tmp_path / name, seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert first.train.fingerprint == again.train.fingerprint != other.train.fingerprint


def test_texts_are_drawn_block_by_block(synthetic: Any) -> None:
    shape = replace(synthetic.SHAPES["amazon-3m"].of_share(0.001), labels_per_text=3.0, terms_per_text=4.0)
    sizes = [len(features[0]) for features, _ in synthetic.blocks(shape, 2 * synthetic.BLOCK + 5, [0, 0])]
    assert sizes == [synthetic.BLOCK, synthetic.BLOCK, 5]


def test_labels_can_be_learned_from_words(synthetic: Any, tmp_path: Path) -> None:
    data = drawn(synthetic, tmp_path / "data")
    model = create_method("linear/fast", {"calibrate": False}).fit(data.train, threads=1)
    first = model.top_k(data.test, 1).labels[:, 0]
    right = [model.vocabulary_.ids[label] in record["labels"] for label, record in zip(first, data.test, strict=True)]
    frequency = data.train.labels.texts_per_label()
    chance = np.mean([frequency.argmax() in labels for labels in data.test.labels])
    assert np.mean(right) > 0.5 > 5 * chance
