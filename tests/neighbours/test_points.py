"""Texts as points: the same alone, in a batch and from a folder; blind to what must not count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from longtail.data.dataset import Dataset, as_table
from longtail.errors import DataError
from longtail.kernels.rows import Rows
from longtail.neighbours import NeighbourIndex
from longtail.neighbours.points import (
    TfidfPointOptions,
    WordPointOptions,
    WordPoints,
    fit_points,
    load_points,
)
from longtail.persist import Folder, write_folder
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.fields import blocks_of
from longtail.text.tokens import TokenOptions
from longtail.text.vectors import WordVectorOptions
from longtail.text.words import FIRST_WORD, WordTokeniser

OPTIONS = {"tfidf": TfidfPointOptions(), "words": WordPointOptions(vectors=WordVectorOptions(width=6))}
RUN = Run()


@pytest.fixture(params=OPTIONS)
def options(request: pytest.FixtureRequest) -> Any:
    return OPTIONS[request.param]


def dense(points: Any) -> np.ndarray[Any, Any]:
    return np.asarray(points.matrix().todense()) if isinstance(points, Rows) else points


def test_training_texts_have_the_points_that_they_get_as_new_ones(options: Any, tiny: Callable[..., Dataset]) -> None:
    split = tiny().train
    made, points = fit_points(split, options, 0, RUN)
    assert dense(points).shape == (60, made.width)
    assert dense(made.of(split.texts, None, RUN)).tobytes() == dense(points).tobytes()
    alone = made.of(split.texts.slice(7, 1), None, RUN)
    np.testing.assert_allclose(dense(alone)[0], dense(points)[7], 0, 1e-6)


def test_points_are_the_same_from_a_folder_and_from_a_stage(
    options: Any, tiny: Callable[..., Dataset], tmp_path: Path
) -> None:
    data = tiny()
    run = replace(RUN, stages=FolderStages.open(tmp_path / "work", "key", False))
    made, points = fit_points(data.train, options, 0, run)
    with write_folder(tmp_path / "m", "model") as writer:
        made.save(writer, "points")
    opened = load_points(Folder(tmp_path / "m", "model"), "points", options)
    again, kept = fit_points(data.train, options, 0, run)
    new = dense(made.of(data.test.texts, None, RUN)).tobytes()
    assert dense(opened.of(data.test.texts, None, RUN)).tobytes() == new
    assert dense(again.of(data.test.texts, None, RUN)).tobytes() == new
    assert dense(kept).tobytes() == dense(points).tobytes()


def test_writing_every_word_twice_changes_no_point_of_words(tiny: Callable[..., Dataset]) -> None:
    split = tiny().train
    made, points = fit_points(split, OPTIONS["words"], 0, RUN)
    doubled = as_table([" ".join([text, text]) for text in split.texts["text"].to_pylist()])
    np.testing.assert_allclose(made.of(doubled, None, RUN), points, 0, 1e-6)
    np.testing.assert_allclose(np.linalg.norm(dense(points), axis=1), 1, 0, 1e-6)


def test_a_point_is_the_mean_of_the_vectors_of_known_words() -> None:
    tokeniser = WordTokeniser(["cat", "dog"], max_tokens=10)
    table = np.array([[0, 0], [0, 0], [3, 0], [0, 4]], np.float32)
    made = WordPoints(tokeniser, table, TokenOptions())
    assert FIRST_WORD == 2
    points = made.of(as_table(["cat", "Dog cat", "cat unheard", "unheard", ""]), None, RUN)
    np.testing.assert_allclose(points, [[1, 0], [0.6, 0.8], [1, 0], [0, 0], [0, 0]], 0, 1e-6)


def test_copies_are_known_by_the_columns_that_are_read(options: Any, tiny: Callable[..., Dataset]) -> None:
    made, _ = fit_points(tiny().train, options, 0, RUN)
    texts = as_table({"text": ["Red apple", "red  apple", "stone"], "note": ["a", "b", "a"]})
    one, two, three = made.hashes(texts, made.of(texts, None, RUN))
    assert one == two != three


def test_other_fields_can_be_read(tiny: Callable[..., Dataset]) -> None:
    split = tiny().train
    table = pa.table({"text": split.texts["text"], "body": split.texts["text"]})
    reads_title = TfidfPointOptions.of({**TfidfPointOptions().options_for_fields("body,text")})
    assert reads_title.columns == ("body", "text")
    assert reads_title.features.blocks == blocks_of("body,text")
    words = WordPointOptions.of({**OPTIONS["words"].plain(), **WordPointOptions().options_for_fields("body, text")})
    assert words.columns == ("body", "text")
    made, points = fit_points(replace(split, texts=table), words, 0, RUN)
    np.testing.assert_allclose(points, made.of(table, None, RUN), 0, 1e-6)


def test_features_without_texts_are_points_and_known_by_their_numbers(tiny: Callable[..., Dataset]) -> None:
    split = tiny().train
    bare = replace(split, texts=as_table([""] * len(split)), features=split.labels.to_scipy())
    made, points = fit_points(bare, OPTIONS["tfidf"], 0, RUN)
    hashes = made.hashes(bare.texts, points)
    rows = [tuple(split.labels[row].tolist()) for row in range(len(split))]
    assert len(set(hashes.tolist())) == len(set(rows)) == len({*zip(rows, hashes.tolist(), strict=True)})
    found = NeighbourIndex.build(points, hashes).nearest(points, 3, hashes)
    assert not (hashes[found.texts] == hashes[:, None])[found.texts >= 0].any()
    assert (found.texts >= 0).all()
    with pytest.raises(DataError, match="kind words must have texts to read"):
        fit_points(bare, OPTIONS["words"], 0, RUN)
