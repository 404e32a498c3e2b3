"""Words as tokens: what a word is, which words are kept, and what a text becomes (docs/methods/shared.md#words)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.persist import Folder, write_folder
from longtail.text.tokens import TokenOptions, tokenise
from longtail.text.words import PAD, UNKNOWN, WordOptions, WordTokeniser, words_of

KIND = "test-words"


def table(*texts: str, **columns: list[str]) -> pa.Table:
    return pa.table({"text": list(texts), **columns})


def learned(*texts: str, max_tokens: int = 512, **options: object) -> WordTokeniser:
    return WordTokeniser.learn(table(*texts), TokenOptions(max_tokens=max_tokens), WordOptions.of(options))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat -- sat.", ["the", "cat", "sat"]),
        ("state-of-the-art o'Neill", ["state-of-the-art", "o'neill"]),
        ("Europe's DON'T we'll", ["europe", "'s", "do", "n't", "we", "'ll"]),
        ("it’s", ["it", "'s"]),
        ("a title/SEP/A text /sep/", ["a", "title", "/SEP/", "a", "text", "sep"]),
        ("... ?! -", []),
        ("", []),
        ("ΟΔΟΣ 3 x_1", ["οδος", "3", "x_1"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("e\u0301te\u0301", ["été"]),
    ],
)
def test_words_are_lower_case_runs_of_letters_and_digits(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_every_word_has_a_word_character_and_no_blank(text: str) -> None:
    for word in words_of(text):
        assert any(letter.isalnum() or letter == "_" or not letter.isascii() for letter in word)
        assert not word.split()[1:]
        assert word == "/SEP/" or word == word.lower()


def test_words_are_numbered_by_the_texts_that_hold_them_and_then_by_alphabet() -> None:
    made = learned("b a b b b", "a c", "a c d", min_df=1)
    assert made.words == ("a", "c", "b", "d")
    assert made.n_ids == 6
    assert made.encode(["d c b a new"]) == ([[5, 3, 4, 2, UNKNOWN]], 0)
    assert made.pad_id == PAD == 0


def test_at_most_max_words_are_kept() -> None:
    assert learned("a b c", "a b", "a", max_words=2, min_df=1).words == ("a", "b")


def test_rare_words_are_read_as_the_unknown_one() -> None:
    texts = "a b c", "a b", "a"
    assert learned(*texts).words == ("a", "b")
    assert learned(*texts, min_df=3).words == ("a",)
    assert learned("a b", "c").words == ("a", "b", "c")  # no word is in two texts
    with pytest.raises(DataError, match="min_df is 4, but the most frequent one is in 3 texts"):
        learned(*texts, min_df=4)


def test_texts_are_cut_and_counted_and_words_behind_the_cut_are_not_learned() -> None:
    made = learned("a b c", "a b", "a", max_tokens=2, min_df=1)
    assert made.words == ("a", "b")
    assert made.encode(["a b a", "a b", "c"]) == ([[2, 3], [2, 3], [UNKNOWN]], 1)


def test_a_text_without_words_is_one_unknown_word() -> None:
    made = learned("a", "a")
    assert made.encode(["", "..."]) == ([[UNKNOWN], [UNKNOWN]], 0)
    rows = tokenise(table("", "a a"), made)
    assert rows.ids.tolist() == [UNKNOWN, 2, 2]
    assert rows.lengths().tolist() == [1, 2]


def test_several_columns_are_read_one_after_the_other() -> None:
    texts = table("b", "b", title=["a", "a"])
    options = TokenOptions(columns=("title", "text"))
    made = WordTokeniser.learn(texts, options, WordOptions())
    assert tokenise(texts, made, options).ids.tolist() == [2, 3, 2, 3]


def test_texts_without_words_or_without_the_column_are_refused() -> None:
    with pytest.raises(DataError, match="must hold words, got none"):
        learned("...", "")
    with pytest.raises(ConfigError, match=r"must name a column of the texts \(text\), got \('body',\)"):
        WordTokeniser.learn(table("a"), TokenOptions(columns=("body",)), WordOptions())


def test_a_saved_tokeniser_gives_the_same_ids(tmp_path: Path) -> None:
    made = learned("a ünder /SEP/ b", "b a ünder /SEP/", "a", max_tokens=3)
    with write_folder(tmp_path / "model", KIND) as writer:
        made.save(writer, "words")
    again = WordTokeniser.load(Folder(tmp_path / "model", KIND), "words")
    texts = ["Ünder /SEP/ a b", "q", ""]
    assert again.encode(texts) == made.encode(texts)
    assert (again.words, again.n_ids) == (made.words, made.n_ids)
