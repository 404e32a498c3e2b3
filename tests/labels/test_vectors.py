"""Label vectors: PIFA, names, random ones, and what stands in for a label without texts.

Specified in docs/methods/xbert.md#invariants 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.dataset import Split, as_table
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.labels.clusters import cluster_labels
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors import LabelInputs, Sources, VectorOptions, label_vectors
from longtail.labels.vectors.base import Weighting
from longtail.labels.vectors.embedding import embedding_vectors
from longtail.labels.vectors.pifa import pifa
from longtail.labels.vectors.random import random_vectors
from longtail.labels.vectors.sentence import clean_name, sentence_vectors
from longtail.labels.vectors.text import text_vectors
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.types import LabelMatrix

ONE = Run(LocalEngine(1))
NAMES = ["rail transport", "rail traffic", "poetry", "lyric poetry", "ab", "!!!"]
VOCABULARY = Vocabulary.of([f"id{i}" for i in range(6)], {f"id{i}": name for i, name in enumerate(NAMES)})


def features(n_texts: int, seed: int = 0) -> sp.csr_matrix:
    return sp.random(n_texts, 15, 0.4, "csr", np.float32, random_state=seed)


def labels(n_texts: int, n_labels: int = 6, seed: int = 0) -> LabelMatrix:
    """The last label has no texts."""
    rng = np.random.default_rng(seed)
    return LabelMatrix.from_lists([np.flatnonzero(rng.random(n_labels - 1) < 0.4) for _ in range(n_texts)], n_labels)


def normalised(matrix: Any) -> Any:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def embeddings(n_texts: int, seed: int = 0) -> Any:
    """Of any length, some zero."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n_texts, 5)) * rng.choice([0, 0.1, 7], (n_texts, 1))).astype(np.float32)


def split_of(y: LabelMatrix) -> Split:
    return Split(as_table([""] * y.n_texts), y, VOCABULARY)


def inputs_of(rows: Rows, of_texts: LabelMatrix, sources: Sources = Sources()) -> LabelInputs:  # noqa: B008
    return LabelInputs(rows, split_of(of_texts), run=ONE, sources=sources)


def by_letters(names: Sequence[str]) -> Any:
    """A stand-in for a sentence encoder: how often names have each of eight letters."""
    return np.array([[name.count(letter) for letter in "abcdefgr"] for name in names], np.float32)


def made(n_texts: int, seed: int, weighting: Weighting = "equal", max_weights: int | None = 300) -> sp.csr_matrix:
    return pifa(Rows.of(features(n_texts, seed)), labels(n_texts, seed=seed), weighting, max_weights, ONE)


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 10**6))
def test_pifa_rows_are_what_the_formula_says(n_texts: int, seed: int) -> None:
    x, y = features(n_texts, seed).toarray(), labels(n_texts, seed=seed).to_scipy().toarray()
    for weighting, weights in (("equal", y), ("by_label_count", normalised(y))):
        vectors = made(n_texts, seed, weighting).toarray()  # type: ignore[arg-type]
        np.testing.assert_allclose(vectors, normalised(weights.T @ x), atol=1e-6)
        lengths = np.linalg.norm(vectors, axis=1)
        assert (np.isclose(lengths, 1, atol=1e-6) | (lengths == 0)).all()
        assert lengths[-1] == 0


def test_both_weightings_agree_when_all_texts_have_as_many_labels() -> None:
    rows, pairs = Rows.of(features(20)), LabelMatrix.from_lists([[i % 5, (i + 1) % 5] for i in range(20)], 5)
    found = [pifa(rows, pairs, weighting, run=ONE).toarray() for weighting in ("equal", "by_label_count")]
    np.testing.assert_allclose(*found, atol=1e-6)
    assert np.abs(made(20, 0, "equal") - made(20, 0, "by_label_count")).max() > 1e-3


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(0, 999), st.sampled_from(["equal", "by_label_count"]))
def test_doubling_every_text_changes_no_direction(n_texts: int, seed: int, weighting: Weighting) -> None:
    x, y = features(n_texts, seed), labels(n_texts, seed=seed)
    twice = Rows.of(sp.vstack([x, x], format="csr")), y.take(np.tile(np.arange(n_texts), 2))
    np.testing.assert_allclose(
        pifa(*twice, weighting, run=ONE).toarray(), pifa(Rows.of(x), y, weighting, run=ONE).toarray(), atol=1e-6
    )


def test_without_a_limit_all_weights_are_kept() -> None:
    whole, limited = (made(20, 3, max_weights=limit) for limit in (None, 15))
    np.testing.assert_array_equal(whole.toarray(), limited.toarray())
    assert whole.nnz > made(20, 3, max_weights=2).nnz


@settings(max_examples=20)
@given(st.integers(1, 16), st.integers(0, 999))
def test_only_the_largest_weights_are_kept(max_weights: int, seed: int) -> None:
    cut, whole = made(20, seed, max_weights=max_weights).toarray(), made(20, seed).toarray()
    for kept, full in zip(cut, whole, strict=True):
        expected = np.where(np.isin(np.arange(15), np.argsort(-full, kind="stable")[:max_weights]), full, 0)
        np.testing.assert_allclose(kept, normalised(expected[None])[0], atol=1e-6)


def test_threads_give_the_same_bits() -> None:
    rows, many = Rows.of(features(3000)), labels(3000, 2000)  # several spans
    found = [pifa(rows, many, run=Run(LocalEngine(n))) for n in (1, 2)]
    np.testing.assert_array_equal(found[0].data, found[1].data)
    np.testing.assert_array_equal(found[0].indices, found[1].indices)


def test_a_label_without_texts_is_known_by_its_name_or_else_at_random() -> None:
    known = sp.csr_matrix((np.ones(1, np.float32), ([0], [3])), (1, 15))
    asked: list[Sequence[str]] = []

    def name_features(names: Sequence[str]) -> Rows:
        asked.append(names)
        return Rows.of(sp.vstack([known if name == "ab" else sp.csr_matrix((1, 15)) for name in names], format="csr"))

    x, y = Rows.of(features(20)), LabelMatrix.from_lists([[i % 4] for i in range(20)], 6)
    vectors = label_vectors(inputs_of(x, y, Sources(name_features)), VectorOptions()).toarray()
    assert asked == [["ab", "!!!"]]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(vectors[4], known.toarray()[0])
    np.testing.assert_allclose(vectors[:4], pifa(x, y, run=ONE).toarray()[:4], atol=1e-7)
    for no_help in (None, lambda names: None):
        again = label_vectors(inputs_of(x, y, Sources(no_help)), VectorOptions()).toarray()
        np.testing.assert_array_equal(again[5], vectors[5])  # drawn by id and seed alone
        np.testing.assert_allclose(np.linalg.norm(again, axis=1), 1, atol=1e-6)
        assert not np.array_equal(again[4], again[5])


def test_texts_without_features_leave_their_label_to_the_fallback() -> None:
    empty = Rows.of(sp.csr_matrix((2, 15), dtype=np.float32))
    vectors = label_vectors(inputs_of(empty, LabelMatrix.from_lists([[0], [1]], 6)), VectorOptions())
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, atol=1e-6)


def test_names_of_the_same_words_are_near_each_other() -> None:
    vectors = text_vectors(VOCABULARY, 3).toarray()
    assert vectors.shape == (6, 3)
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > similarity[0, 2]
    assert similarity[2, 3] > similarity[2, 0]


@pytest.mark.parametrize(
    "kinds",
    [
        ("text",),
        ("random",),
        ("pifa",),
        ("sentence",),
        ("embedding",),
        ("pifa", "text"),
        ("pifa", "sentence"),
        ("embedding", "pifa"),
        ("pifa", "random", "text"),
    ],
)
def test_every_label_has_a_vector_of_length_one(kinds: tuple[Any, ...]) -> None:
    options = VectorOptions(kinds=kinds, n_components=4)
    sources = Sources(encode_names=by_letters, encode_texts=lambda texts: embeddings(len(texts)))
    vectors = label_vectors(inputs_of(Rows.of(features(20)), labels(20), sources), options)
    assert vectors.dtype == np.float32
    assert vectors.shape[0] == 6
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, atol=1e-5)


def test_several_kinds_lie_side_by_side_with_equal_weight() -> None:
    x, y = Rows.of(features(20)), labels(20)
    both, one, other = (
        label_vectors(inputs_of(x, y), VectorOptions(kinds=kinds, n_components=4)).toarray()
        for kinds in (("pifa", "random"), ("pifa",), ("random",))
    )
    np.testing.assert_allclose(both, np.hstack([one, other]) / np.sqrt(2), atol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value")  # of a variance that is zero
@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["same", "same"], ["", " "], ["…", "–", "!"]])
def test_names_that_say_little_still_give_vectors(names: list[str]) -> None:
    ids = [f"id{i}" for i in range(len(names))]
    vocabulary = Vocabulary.of(ids, dict(zip(ids, names, strict=True)))
    vectors = text_vectors(vocabulary, 256).toarray()
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@given(st.lists(st.text(max_size=5), unique=True, max_size=6), st.randoms())
def test_random_vectors_depend_on_ids_and_seed_only(ids: list[str], random: Any) -> None:
    vectors = random_vectors(ids, 8, 3).toarray()
    moved = random.sample(ids, len(ids))
    np.testing.assert_array_equal(random_vectors(moved, 8, 3).toarray(), vectors[[ids.index(i) for i in moved]])
    assert vectors.shape == (len(ids), 8)
    if ids:
        assert not np.array_equal(random_vectors(ids, 8, 4).toarray(), vectors)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


# names by a sentence encoder


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("rail transport", "rail transport"),
        ("Women%27s_rights__%28law%29", "Women s rights law"),
        ("use::calculating", "use calculating"),
        ("C++", "C++"),
        ("  100 %  ", "100"),
        ("--_…!", "<unk>"),
        ("", "<unk>"),
        ("हिन्दी-ग्रंथ", "हिन्दी ग्रंथ"),
    ],
)
def test_names_become_running_text(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


@given(st.text(max_size=12))
def test_a_name_is_clean_once_it_was_cleaned(name: str) -> None:
    cleaned = clean_name(name)
    assert cleaned
    assert "_" not in cleaned and "  " not in cleaned and cleaned == cleaned.strip()


def test_the_encoder_reads_clean_names_in_label_order_and_its_vectors_get_length_one() -> None:
    asked: list[Sequence[str]] = []

    def sentences(names: Sequence[str]) -> Any:
        asked.append(names)
        return by_letters(names)

    vocabulary = Vocabulary.of(["a", "b", "c"], {"a": "car_race", "b": "!!", "c": "bad%20ice"})
    vectors = sentence_vectors(vocabulary, sentences).toarray()
    assert asked == [["car race", "<unk>", "bad ice"]]
    expected = by_letters(["car race", "bad ice"])
    np.testing.assert_allclose(vectors[[0, 2]], normalised(expected), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(vectors[1], random_vectors(["b"], 8).toarray()[0])  # nothing was known of `<unk>`


def test_what_an_encoder_made_is_left_alone() -> None:
    made_once = by_letters(NAMES)
    before = made_once.copy()
    sentence_vectors(VOCABULARY, lambda names: made_once)
    np.testing.assert_array_equal(made_once, before)


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        (np.ones((5, 3)), r"shape \(6, d\), one per label, got \(5, 3\)"),
        (np.ones(6), r"got \(6,\)"),
        (np.full((6, 3), np.nan), "must be finite numbers, got NaN or infinity"),
    ],
)
def test_an_encoder_that_gives_something_else_is_refused(dense: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        sentence_vectors(VOCABULARY, lambda names: dense)


@pytest.mark.parametrize(("kind", "instead"), [("sentence", "'text'"), ("embedding", "'pifa'")])
def test_kinds_that_need_an_encoder_say_where_there_is_one(kind: Any, instead: str) -> None:
    options = VectorOptions(kinds=("pifa", kind))
    with pytest.raises(ConfigError, match=rf"'{kind}' needs a neural encoder.*use `method=xbert`, or {instead}"):
        label_vectors(inputs_of(Rows.of(features(20)), labels(20)), options)


# PIFA of embeddings


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 10**6), st.sampled_from(["equal", "by_label_count"]))
def test_embeddings_of_a_labels_texts_are_summed_like_features(n_texts: int, seed: int, weighting: Weighting) -> None:
    e, y = embeddings(n_texts, seed), labels(n_texts, seed=seed)
    vectors = embedding_vectors(e, y, VOCABULARY, weighting).toarray()
    rows = Rows.of(sp.csr_matrix(normalised(e)))
    expected = pifa(rows, y, weighting, run=ONE).toarray()
    known = np.linalg.norm(expected, axis=1) > 0
    np.testing.assert_allclose(vectors[known], expected[known], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    lost = [VOCABULARY.ids[at] for at in np.flatnonzero(~known)]
    np.testing.assert_array_equal(vectors[~known], random_vectors(lost, 5).toarray())
    twice = y.take(np.tile(np.arange(n_texts), 2))
    doubled = embedding_vectors(np.tile(e, (2, 1)), twice, VOCABULARY, weighting).toarray()
    np.testing.assert_allclose(doubled, vectors, atol=1e-4)


def written(folder: Path, kind: str, rows: dict[str, list[float]]) -> str:
    """A file of label vectors."""
    if kind == "text":
        lines = [f"{label}\t{' '.join(map(str, row))}\n" for label, row in rows.items()]
        (folder / "elmo.tsv").write_text("".join(lines))
        return str(folder / "elmo.tsv")
    np.save(folder / "elmo.npy", np.array(list(rows.values()), np.float32))
    (folder / "elmo.txt").write_text("".join(f"{label}\n" for label in rows))
    return str(folder / "elmo.npy")


@pytest.mark.parametrize("kind", ["text", "numpy"])
@pytest.mark.parametrize("unit_length", [True, False])
def test_vectors_from_a_file_go_to_the_labels_with_their_ids(kind: str, unit_length: bool, tmp_path: Path) -> None:
    rows = {"id2": [3.0, 4.0], "another": [9.0, 9.0], "id0": [0.0, -2.0]}
    options = VectorOptions(kinds=("file",), file=written(tmp_path, kind, rows), unit_length=unit_length)
    found = label_vectors(inputs_of(Rows.of(features(4)), labels(4)), options).toarray()
    expected = np.array([[0, -2], [3, 4]]) / (np.array([[2], [5]]) if unit_length else 1)
    assert np.allclose(found[[0, 2]], expected)
    others = np.linalg.norm(found[[1, 3, 4, 5]], axis=1)  # random directions, as long as the rest
    assert np.allclose(others, 1 if unit_length else 3.5)
    assert len(np.unique(found, axis=0)) == 6


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.tsv", "id0\t1 2\nid1\t1\n", "x.tsv:2: must have 2 numbers, as the first line has, got 1"),
        ("x.tsv", "id0 1 2\n", "x.tsv:1: must be a label's id, a tab and numbers"),
        ("x.tsv", "id0\tone two\n", "x.tsv:1: must have numbers behind the tab"),
        ("x.tsv", "other\t1 2\n", "holds none of the 6 labels, such as 'id0'; name them by id"),
        ("x.tsv", "id0\t1 nan\n", "must be finite numbers, got NaN or infinity"),
        ("x.npy", "no array", "must be a numpy array of numbers"),
        (None, "", "vectors.file must be a file of label vectors; there is no file"),
    ],
)
def test_a_file_of_label_vectors_that_cannot_be_used_is_named(
    name: str | None, content: str, message: str, tmp_path: Path
) -> None:
    if name is not None:
        (tmp_path / name).write_text(content)
    options = VectorOptions(kinds=("file",), file=str(tmp_path / (name or "missing.tsv")))
    with pytest.raises(DataError, match=message):
        label_vectors(inputs_of(Rows.of(features(4)), labels(4)), options)


def test_vectors_from_a_file_need_one_and_its_ids(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vectors.kinds 'file' needs vectors.file, got none"):
        label_vectors(inputs_of(Rows.of(features(4)), labels(4)), VectorOptions(kinds=("file",)))
    file = written(tmp_path, "numpy", {"id0": [1.0], "id1": [2.0]})
    options = VectorOptions(kinds=("file",), file=file)
    (tmp_path / "elmo.txt").write_text("id0\n")
    with pytest.raises(DataError, match=r"must have 2 ids, one per row of elmo\.npy, got 1"):
        label_vectors(inputs_of(Rows.of(features(4)), labels(4)), options)
    (tmp_path / "elmo.txt").unlink()
    with pytest.raises(DataError, match=r"needs the ids of its labels, one per line, in elmo\.txt beside it"):
        label_vectors(inputs_of(Rows.of(features(4)), labels(4)), options)


def test_each_kind_of_vectors_may_have_a_geometry_of_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {f"id{label}": (rng.random(5) * rng.choice([1, 9])).tolist() for label in range(40)}
    split = Split(as_table([""]), LabelMatrix.from_lists([[0]], 40), Vocabulary.of([*rows]))
    options = VectorOptions(kinds=("file",), file=written(tmp_path, "text", rows), unit_length=False)

    def clusters(of_vectors: Any, of_tree: Any) -> list[int]:
        vectors = options.model_copy(update={"geometry": of_vectors})
        tree = TreeOptions(n_levels=1, max_leaf=4, geometry=of_tree)
        return cluster_labels(LabelInputs(Rows.of(features(1)), split), vectors, tree).parents[-1].tolist()

    euclidean, spherical = clusters(None, "euclidean"), clusters(None, "spherical")
    assert euclidean != spherical
    assert (clusters("euclidean", "spherical"), clusters("spherical", "euclidean")) == (euclidean, spherical)


def test_embeddings_of_other_texts_or_without_numbers_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(20, d\), one per text, got \(19, 5\)"):
        embedding_vectors(embeddings(19), labels(20), VOCABULARY)
    with pytest.raises(DataError, match="embeddings must be finite numbers"):
        embedding_vectors(np.full((20, 2), np.inf, np.float32), labels(20), VOCABULARY)
