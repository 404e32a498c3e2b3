"""The vote of neighbours: where labels leak it shows, and training texts do not find themselves."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import load_dataset
from longtail.data.dataset import Dataset, Split, as_table
from longtail.errors import ConfigError, NotFittedError
from longtail.methods import load_model
from longtail.methods.knn import KNN
from longtail.run.run import Run
from longtail.types import LabelMatrix

POINTS: list[dict[str, Any]] = [
    {"kind": "tfidf", "features": {"blocks": [{"min_df": 1}]}},
    {"kind": "words", "words": {"min_df": 1}, "vectors": {"width": 20}},
]
"""All words count, so that different texts are different points."""


@pytest.fixture(scope="module")
def split() -> Split:
    """Some of debtags-sample, with copies in it: of text and labels, and of text alone."""
    some = load_dataset("debtags-sample").train
    rows = np.concatenate([np.arange(300), [5, 5, 5, 17]])
    taken = some.take(rows)
    lists = [taken.labels[row].tolist() for row in range(300)] + [[], [1], [2, 3], [4]]
    return replace(taken, labels=LabelMatrix.from_lists(lists, taken.labels.n_labels))


@pytest.fixture(scope="module", params=POINTS, ids=lambda points: points["kind"])
def model(request: pytest.FixtureRequest, split: Split) -> KNN:
    return KNN(points=request.param).fit(split)


def share_found(model: KNN, neighbours: np.ndarray[Any, Any], split: Split) -> np.ndarray[Any, Any]:
    """The share of each text's labels that its neighbours have."""
    gold = [set(model.pool_.labels[row].tolist()) for row in range(len(split))]
    near = [set().union(*(model.pool_.labels[text].tolist() for text in row if text >= 0)) for row in neighbours]
    return np.array([len(own & found) / len(own) if own else 1.0 for own, found in zip(gold, near, strict=True)])


def contents(split: Split) -> list[str]:
    return [" ".join(text.lower().split()) for text in split.texts["text"].to_pylist()]


def test_training_texts_find_neither_themselves_nor_copies(model: KNN, split: Split) -> None:
    found = model.neighbours(split, 10, leave_out=True)
    own = contents(split)
    assert (found.texts >= 0).all()
    assert found.texts.max() < len(split)
    assert not any(own[text] == own[row] for row, texts in enumerate(found.texts.tolist()) for text in texts)


def test_the_nearest_text_shows_the_answer_where_it_is_not_left_out(model: KNN, split: Split) -> None:
    """The detector of leaks: with one neighbour, every training text is shown all of its labels."""
    found = model.neighbours(split, 1)
    assert found.cosines == pytest.approx(1, abs=1e-5)
    nearest, own = found.texts, contents(split)
    itself = np.array([own[texts[0]] == own[row] for row, texts in enumerate(nearest.tolist())])
    assert itself.mean() > 0.95  # means of word vectors may be equal where texts are not
    firsts = itself & (np.arange(len(split)) < 300)  # copies with other labels find the first of them
    assert (share_found(model, nearest, split)[firsts] == 1).all()


@pytest.mark.parametrize("k", [1, 5])
def test_with_copies_left_out_labels_are_found_as_often_as_by_a_plain_leave_one_out(
    model: KNN, split: Split, k: int
) -> None:
    points = model.pool_.points.of(split.texts, None, Run())
    dense = np.asarray(points.matrix().todense()) if hasattr(points, "matrix") else points
    dense = dense.astype(np.float64)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    own, plain = contents(split), []
    for row in range(len(split)):
        others = [text for text in range(len(split)) if own[text] != own[row]]
        plain.append(sorted(others, key=lambda text: (-round(float(dense[row] @ dense[text]), 5), text))[:k])
    found = share_found(model, model.neighbours(split, k, leave_out=True).texts, split)
    assert found.mean() == pytest.approx(share_found(model, np.array(plain), split).mean(), abs=2e-3)
    assert found.mean() < 0.9


def test_texts_are_read_in_blocks(model: KNN, split: Split) -> None:
    whole = model.top_k(split, 5)
    near = model.neighbours(split, 5, leave_out=True)
    in_blocks = copy(model)
    in_blocks.pool_ = replace(model.pool_, at_once=37)
    blocks = in_blocks.top_k(split, 5)
    assert np.array_equal(blocks.labels, whole.labels)
    assert blocks.scores.tobytes() == whole.scores.tobytes()
    assert np.array_equal(in_blocks.neighbours(split, 5, leave_out=True).texts, near.texts)


def test_data_without_texts_are_read_as_features(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    data = tiny()
    bare = {
        name: replace(part, texts=as_table([""] * len(part)), features=part.labels.to_scipy())
        for name, part in data.splits.items()
    }
    model = KNN(n_neighbours=5).fit(bare["train"])
    found = model.top_k(bare["test"], 1)
    assert np.mean([found.labels[row, 0] in data.test.labels[row] for row in range(60)]) > 0.9
    model.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").top_k(bare["test"], 1).labels, found.labels)
    assert (model.neighbours(bare["train"], 1, leave_out=True).cosines < 0.999).all()


def test_lists_of_faiss_are_saved_with_the_model(split: Split, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    search = {"kind": "faiss", "n_lists": 4, "n_probed": 4}
    model = KNN(points=POINTS[1], search=search).fit(split)
    exact = KNN(points=POINTS[1]).fit(split)
    model.save(tmp_path / "m")
    found = load_model(tmp_path / "m").top_k(split, 5)
    assert found.labels.tobytes() == model.top_k(split, 5).labels.tobytes()
    apart = np.abs(found.scores[:, 0] - exact.top_k(split, 5).scores[:, 0])
    assert np.mean(apart < 1e-4) > 0.9  # which of some copies is among the 30 is another matter
    with pytest.raises(ConfigError, match=r"search.kind must be 'exact' where points are of kind 'tfidf', got 'faiss'"):
        KNN(search=search)


def test_needs_grow_with_the_texts_and_time_is_measured(split: Split) -> None:
    for points in POINTS:
        model = KNN(points=points)
        small, large = (
            model.estimate_resources(split.take(np.arange(50))),
            model.estimate_resources(split, measure=True),
        )
        assert small.memory_bytes < large.memory_bytes
        assert small.seconds is None
        assert large.seconds is not None
        assert large.seconds > 0


@pytest.mark.parametrize("points", POINTS)
def test_needs_count_the_pool_that_is_then_held(split: Split, points: dict[str, Any]) -> None:
    needs = KNN(points=points).estimate_resources(split)
    parts = dict(needs.parts)
    pool = KNN(points=points).fit(split).pool_.index.arrays()
    held = sum(array.nbytes for name, array in pool.items() if name != "hashes")
    assert held / 2 < parts["pool"] < 4 * held
    assert needs.memory_bytes == sum(parts.values()) > parts["points"] + parts["pool"] > 0
    assert needs.disk_bytes == parts["pool"]


def test_neighbours_need_a_trained_model() -> None:
    with pytest.raises(NotFittedError, match="not trained"):
        KNN().neighbours(["x"])
