"""What is made of the texts of one call is made once, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.fields import TfidfOptions
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenOptions
from longtail.text.words import WordTokeniser

ONE = Run(LocalEngine(1))
TEXTS = ["red apple", "grey stone", "red stone red"]


class Counting(WordTokeniser):
    """Counts the texts that it tokenises."""

    n_texts = 0

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        self.n_texts += len(texts)
        return super().encode(texts)


@pytest.fixture
def texts() -> TextReadings:
    return TextReadings(pa.table({"text": pa.array(TEXTS, pa.string()), "title": pa.array(["a", "b", "c"])}))


def a_tokeniser(max_tokens: int = 8, words: Sequence[str] = ("red", "stone", "apple")) -> Counting:
    return Counting(words, max_tokens)


def test_tokenisers_that_are_equal_share_tokens_and_others_do_not(texts: TextReadings) -> None:
    one, same, shorter, other = a_tokeniser(), a_tokeniser(), a_tokeniser(2), a_tokeniser(words=("red", "grey"))
    options = TokenOptions()
    assert texts.tokens(one, options, ONE) is texts.tokens(same, options, ONE)
    assert (one.n_texts, same.n_texts) == (3, 0)
    assert texts.tokens(shorter, options, ONE).lengths().tolist() == [2, 2, 2]
    assert texts.tokens(other, options, ONE).ids.tolist() != texts.tokens(one, options, ONE).ids.tolist()


def test_other_token_options_give_other_tokens(texts: TextReadings) -> None:
    tokeniser = a_tokeniser()
    texts.tokens(tokeniser, TokenOptions(), ONE)
    titles = texts.tokens(tokeniser, TokenOptions(columns=("title",)), ONE)
    assert titles.lengths().tolist() == [1, 1, 1]
    assert tokeniser.n_texts == 6


def test_a_saved_tokeniser_is_known_again(texts: TextReadings, tmp_path: Path) -> None:
    tokeniser = a_tokeniser()
    with write_folder(tmp_path / "t", "test") as writer:
        tokeniser.save(writer, "words")
    opened = WordTokeniser.load(Folder(tmp_path / "t", "test"), "words")
    assert opened.fingerprint == tokeniser.fingerprint


def test_many_threads_wait_for_the_first(texts: TextReadings) -> None:
    tokeniser = a_tokeniser()
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: texts.tokens(tokeniser, TokenOptions(), ONE), range(32)))
    assert tokeniser.n_texts == 3
    assert len({id(rows) for rows in tokens}) == 1


def test_a_stage_is_kept_where_it_is_asked_for(texts: TextReadings, tmp_path: Path) -> None:
    run = Run(LocalEngine(1), stages=FolderStages.open(tmp_path / "work", {}, resume=False))
    texts.tokens(a_tokeniser(), TokenOptions(), run, stage="tokens")
    assert (tmp_path / "work" / "tokens").is_dir()
    again = a_tokeniser()
    TextReadings(texts.table).tokens(again, TokenOptions(), run, stage="tokens")
    assert again.n_texts == 0
    TextReadings(texts.table).tokens(again, TokenOptions(), run)
    assert again.n_texts == 3


def test_features_are_fitted_once_for_the_same_options_and_their_rows_are_those_of_training() -> None:
    split = Split.of(TEXTS, [["a"], ["b"], ["a"]])
    texts, options = TextReadings.of(split), TfidfOptions()
    features, rows = texts.fit_features(split, options, ONE)
    assert texts.fit_features(split, TfidfOptions(), ONE)[0] is features
    assert texts.rows(features, ONE) is rows
    fresh = TextReadings.of(split)
    assert fresh.rows(features, ONE) is fresh.rows(features, ONE)
    np.testing.assert_array_equal(fresh.rows(features, ONE).values, rows.values)


def test_sparse_features_that_came_with_the_texts_are_read() -> None:
    plain = Split.of(["", ""], [["a"], ["b"]])
    split = Split(plain.texts, plain.labels, plain.vocabulary, sp.csr_matrix(np.eye(2, 5, dtype=np.float32)))
    texts = TextReadings.of(split)
    features, rows = texts.fit_features(split, TfidfOptions(), ONE)
    assert isinstance(rows, Rows)
    assert features.n_features == 5


def test_texts_that_were_cut_are_known_once_something_has_read_them(texts: TextReadings) -> None:
    assert texts.cut().tolist() == [False, False, False]
    texts.tokens(a_tokeniser(3), TokenOptions(), ONE)
    assert texts.cut().tolist() == [False, False, False]
    texts.tokens(a_tokeniser(2), TokenOptions(columns=("text", "title")), ONE)
    assert texts.cut().tolist() == [True, True, True]
    longer = TextReadings(pa.table({"text": pa.array(["red", "red stone red red", ""], pa.string())}))
    longer.tokens(a_tokeniser(3), TokenOptions(), ONE)
    assert longer.cut().tolist() == [False, True, False]
