"""Word vectors: every kind of file gives the same table, bad files are named, and texts make useful vectors."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from longtail.errors import ConfigError, DataError
from longtail.methods import create_method
from longtail.text.tokens import TokenOptions, TokenRows, tokenise
from longtail.text.vectors import WordVectorOptions, WordVectors, count_contexts, trained_vectors, word_vectors
from longtail.text.words import PAD, UNKNOWN, WordOptions, WordTokeniser

KNOWN = {"cat": [0.25, -1.5, 3.0], ".": [9.0, 8.0, 7.0], 'q"\\ü': [0.5, 0.0, -0.5], "dog": [1.0, 2.0, 3.0]}
WORDS = ["dog", "/SEP/", "unheard", "cat", 'q"\\ü']


def glove(path: Path) -> None:
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in KNOWN.items()]
    path.write_text("\n".join([*lines, ". . 5 5 5", "dog 7 7 7"]) + "\n")


def word2vec(path: Path) -> None:
    lines = [f"{word} {' '.join(map(str, row))} " for word, row in KNOWN.items()]
    path.write_text("\n".join(["4 3", *lines]) + "\n")


def numpy_array(path: Path) -> None:
    np.save(path, np.array([*KNOWN.values(), [7, 7, 7]]))
    path.with_suffix(".txt").write_text("\n".join([*KNOWN, "dog"]) + "\n")


def wink(path: Path) -> None:
    vectors = {word: [*row, 1.25, number] for number, (word, row) in enumerate(KNOWN.items())}
    head = {"precision": 8, "l2NormIndex": 3, "size": 4, "dimensions": 3, "words": ["vectors", *KNOWN]}
    path.write_text(json.dumps({**head, "vectors": vectors, "unkVector": [0, 0, 0, 0, -1]}))


def compressed(make: Callable[[Path], None], squeeze: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        make(path)
        path.write_bytes(squeeze(path.read_bytes()))

    return write


FILES: dict[str, Callable[[Path], None]] = {
    "glove.txt": glove,
    "word2vec.vec": word2vec,
    "words.npy": numpy_array,
    "wink.json": wink,
    "glove.txt.gz": compressed(glove, gzip.compress),
    "word2vec.txt.bz2": compressed(word2vec, bz2.compress),
    "glove.txt.zst": compressed(glove, zstandard.compress),
    "wink.json.gz": compressed(wink, gzip.compress),
}


def read(path: Path, words: list[str] = WORDS, seed: int = 0, **options: Any) -> WordVectors:
    return word_vectors(words, WordVectorOptions(source=str(path), **options), seed=seed)


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_vectors_of_the_vocabulary(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    made = read(tmp_path / name)
    assert made.table.dtype == np.float32
    assert made.n_found == 4
    expected = [KNOWN["dog"], KNOWN["."], made.table[4], KNOWN["cat"], KNOWN['q"\\ü']]
    np.testing.assert_array_equal(made.table[2:], np.array(expected, np.float32))
    assert not made.table[PAD].any()


def test_words_without_a_vector_are_random_within_the_spread(tmp_path: Path) -> None:
    glove(tmp_path / "v.txt")
    words = ["cat", *(f"w{number}" for number in range(2000))]
    made = read(tmp_path / "v.txt", words, spread=0.5)
    strange = made.table[[UNKNOWN, *range(3, 2003)]]
    assert -0.5 <= strange.min() < -0.49
    assert 0.49 < strange.max() <= 0.5
    np.testing.assert_array_equal(made.table, read(tmp_path / "v.txt", words, spread=0.5).table)
    assert (made.table[3:] != read(tmp_path / "v.txt", words, 1, spread=0.5).table[3:]).any()


def test_without_a_source_all_words_are_random_and_as_wide_as_asked() -> None:
    made = word_vectors(WORDS, WordVectorOptions(width=7))
    assert made.table.shape == (7, 7)
    assert made.n_found == 0
    assert np.abs(made.table).max() <= 1
    assert word_vectors(WORDS, WordVectorOptions()).table.shape == (7, 300)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", "dog 1 2\ncat 1\n", r"v.txt:2: must have a word and 2 numbers with blanks between, got 1"),
        ("v.txt", "dog 1 2\ncat 1 x\n", r"v.txt:2: must have only numbers after the word"),
        ("v.txt", "dog 1 2\n\ncat 1 nan\n", r"v.txt:3: must have finite numbers"),
        ("v.txt", "dog 1 2\ncat 1 2 3\n", r"v.txt:2: must have a word and 2 numbers, got 3 numbers"),
        ("v.txt", "some words here\n", r"v.txt:1: must be `word 0.1 -0.2 ...`, or `n_words width`"),
        ("v.txt", "dog\t1\t2\n", r"v.txt:1: must be `word"),
        ("v.txt", "3 2\ndog 1 2\ncat 1 2\n", r"must have 3 words as its first line says, got 2"),
        ("v.txt", "horse 1 2\n", r"holds none of the 5 words of the texts"),
        ("v.txt", "", r"holds none of the 5 words"),
        ("v.txt.gz", "dog 1 2\n", r"cannot read .*v.txt.gz"),
        ("v.npy", "no array", r"v.npy must be a numpy array of numbers"),
        ("v.json", '{"dimensions": 2, "words": ["vectors"]}', r"must be as wink writes it.*found no vectors"),
        ("v.json", '{"vectors": {"dog": [1, 2]}}', r"found no dimensions"),
        ("v.json", '{"dimensions": 2, "vectors": {"a": [1, 2], "dog": [1]}}', r"entry 2 of vectors: must have 2 numb"),
        ("v.json", '{"dimensions": 2, "vectors": {"dog": [1, "x"]}}', r"entry 1 of vectors: must have only numbers"),
        ("v.json", '{"dimensions": 2, "vectors": {"dog": [1, 2], "cat": [1,', r"entry 2 of vectors: ends too early"),
        ("v.json", '{"dimensions": 2, "vectors": {"dog": [1, 2], 5', r"entry 2 of vectors: "),
    ],
)
def test_bad_files_are_named_with_the_place_and_what_was_expected(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / name)


def test_arrays_need_their_words_and_the_right_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    with pytest.raises(DataError, match=r"needs its words, one per line, beside it: v\.txt or words\.txt"):
        read(tmp_path / "v.npy")
    (tmp_path / "words.txt").write_text("dog\n")
    with pytest.raises(DataError, match=r"words.txt must have 2 words, one per row of v.npy, got 1"):
        read(tmp_path / "v.npy")
    (tmp_path / "vocab").write_text("ignored, words.txt comes first\n")
    (tmp_path / "words.txt").write_text("dog 17\ncat 3\n")
    assert read(tmp_path / "v.npy").n_found == 2
    np.save(tmp_path / "v.npy", np.ones(3))
    with pytest.raises(DataError, match=r"must be a float array \(n_words, width\), got float64 \(3,\)"):
        read(tmp_path / "v.npy")
    np.save(tmp_path / "v.npy", np.array([["a"]], object), allow_pickle=True)
    with pytest.raises(DataError, match="must be a numpy array of numbers"):
        read(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("xml-cnn", {"encoder": {"vectors": {"source": "none.txt"}}}),
        ("knn", {"points": {"kind": "words", "vectors": {"source": "none.txt"}}}),
    ],
)
def test_a_missing_file_is_told_before_texts_are_read(
    method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(WordTokeniser, "learn", lambda *_: pytest.fail("texts were read"))
    with pytest.raises(DataError, match=r"there is no file none\.txt"):
        create_method(method, options).fit(["a text", "another"], [["a"], ["b"]])


def test_a_missing_file_and_a_wrong_width_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read(tmp_path / "v.txt")
    glove(tmp_path / "v.txt")
    assert read(tmp_path / "v.txt", width=3).table.shape == (7, 3)
    with pytest.raises(ConfigError, match=r"vectors.width must be 3 as in .*v.txt, got 5"):
        read(tmp_path / "v.txt", width=5)
    with pytest.raises(ConfigError, match="needs texts to learn from"):
        word_vectors(WORDS, WordVectorOptions(source="train"))


def test_a_large_wink_file_is_read_in_pieces(tmp_path: Path) -> None:
    """Entries that lie across the border of two reads are neither lost nor torn."""
    vectors = {f"w{number}": [number, 0.5, -number, 1.0, number] for number in range(200_000)}
    (tmp_path / "v.json").write_text(json.dumps({"dimensions": 3, "vectors": vectors}))
    words = [f"w{number}" for number in range(0, 200_000, 7)]
    made = read(tmp_path / "v.json", words)
    assert made.n_found == len(words)
    numbers = np.arange(0, 200_000, 7, dtype=np.float32)
    np.testing.assert_array_equal(made.table[2:], np.stack([numbers, np.full_like(numbers, 0.5), -numbers], 1))


def tokens_of(n_texts: int, seed: int = 0) -> tuple[WordTokeniser, TokenRows]:
    """Texts of two subjects, whose words never meet, and of fillers that are everywhere."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    texts = []
    for number in range(n_texts):
        subject = [f"{'ab'[number % 2]}{i}" for i in rng.integers(0, 10, 20)]
        texts.append(" ".join(rng.permutation([*subject, *(f"the{i}" for i in rng.integers(0, 3, 10))])))
    table = pa.table({"text": [*texts, "lonely", "lonely"]})
    tokeniser = WordTokeniser.learn(table, TokenOptions(), WordOptions())
    return tokeniser, tokenise(table, tokeniser)


def test_vectors_of_the_texts_bring_words_of_a_subject_together() -> None:
    tokeniser, rows = tokens_of(100)
    options = WordVectorOptions(source="train", width=8, window=3)
    made = word_vectors(tokeniser.words, options, tokens=lambda: rows)
    assert made.table.shape == (tokeniser.n_ids, 8)
    assert made.n_found == len(tokeniser.words) - 1
    assert not made.table[PAD].any()
    of = {word: made.table[number] for number, word in enumerate(tokeniser.words, 2)}
    assert of["lonely"].any()  # no neighbours, so a random one
    lengths = np.linalg.norm([vector for word, vector in of.items() if word != "lonely"], axis=1)
    np.testing.assert_allclose(lengths, np.sqrt(8 / 3), rtol=1e-5)
    a, b = (np.array([of[f"{subject}{number}"] for number in range(10)]) for subject in "ab")
    assert (a @ a.T).min() > (a @ b.T).max()
    assert (b @ b.T).min() > (a @ b.T).max()
    again = word_vectors(tokeniser.words, options, tokens=lambda: rows)
    np.testing.assert_array_equal(made.table, again.table)


def test_the_counts_behind_trained_vectors_are_those_of_a_plain_loop() -> None:
    tokeniser, rows = tokens_of(12)
    options = WordVectorOptions(window=2, n_contexts=6)
    expected = np.zeros((tokeniser.n_ids, 8))
    for start, stop in zip(rows.ptr[:-1], rows.ptr[1:], strict=True):
        own = rows.ids[start:stop].tolist()
        for at, word in enumerate(own):
            for context in own[max(at - 2, 0) : at] + own[at + 1 : at + 3]:
                if context < 8:
                    expected[word, context] += 1
    for at_once in (1 << 22, 50):  # in one go, and in several
        np.testing.assert_array_equal(count_contexts(rows, tokeniser.n_ids, options, at_once).toarray(), expected)


def test_vectors_can_be_wider_than_there_are_words_and_texts_may_be_too_short_for_any() -> None:
    tokeniser, rows = tokens_of(10)
    table, found = trained_vectors(rows, tokeniser.n_ids, WordVectorOptions(width=64))
    assert table.shape == (tokeniser.n_ids, 64)
    assert np.isfinite(table).all()
    assert not table[PAD].any()
    assert len(found) == len(tokeniser.words) - 1
    lonely = TokenRows(np.array([2, 3], np.int32), np.array([0, 1, 2]))
    assert not len(trained_vectors(lonely, 4, WordVectorOptions(width=4))[1])
