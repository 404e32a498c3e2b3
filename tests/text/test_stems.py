"""Stems: forms of one word share one, other words do not, and compounds are split only where all parts are known."""

from __future__ import annotations

import copy

import pytest

from longtail.text.stems import UNKNOWN, Stems, part_code, stem_english, stem_german, words_of

NAMES = [["klimaschutz"], ["gesetz"], ["bank"], ["filter", "theorie"], ["banks"], ["of", "steel"]]


@pytest.fixture
def stems() -> Stems:
    return Stems.of_names(("en", "de"), NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("policies", "policy"),
        ("boxes", "box"),
        ("banks", "bank"),
        ("branches", "branch"),
        ("classes", "class"),
        ("gases", "gas"),
        ("bases", "base"),
    ],
)
def test_english_plurals_have_the_stem_of_the_singular(one: str, other: str) -> None:
    assert stem_english(one) == stem_english(other)


@pytest.mark.parametrize("word", ["gas", "class", "analysis", "virus", "is"])
def test_english_words_that_only_look_like_plurals_stay(word: str) -> None:
    assert stem_english(word) == word


@pytest.mark.parametrize(
    ("one", "other"),
    [("häuser", "haus"), ("gesetzes", "gesetz"), ("banken", "bank"), ("elektrischen", "elektrisches")],
)
def test_german_forms_share_a_stem(one: str, other: str) -> None:
    assert stem_german(one) == stem_german(other)


def test_hyphens_part_words_and_possessives_are_left_out() -> None:
    assert words_of("The driver's Plug-in-Hybrid, 2nd ed.") == ["the", "driver", "plug", "in", "hybrid", "2nd", "ed"]


def test_letters_with_combining_marks_are_those_in_one_piece() -> None:
    assert words_of("Mu\u0308ll") == words_of("Müll")


def test_a_word_of_a_name_has_its_id_in_every_form_and_each_language_its_own(stems: Stems) -> None:
    english, german = (stems.codes(["bank", "banks", "banken"], language).tolist() for language in (0, 1))
    assert english[0] == english[1] >= 0
    assert english[2] == UNKNOWN
    assert german[0] == german[2] >= 0
    assert not set(english) & set(german)
    assert stems.stem_of(english[0]) == stems.stem_of(german[0]) == "bank"


def test_function_words_have_no_code(stems: Stems) -> None:
    assert len(stems.codes(["of", "the"], 0)) == 0
    assert stems.codes(["the", "steel"], 1).tolist()[0] == UNKNOWN  # `the` is none in German


def test_german_compounds_of_known_words_are_split_and_others_are_not(stems: Stems) -> None:
    parts = [part_code(code) for code in stems.codes(["klimaschutz", "gesetz"], 1).tolist()]
    assert stems.codes(["klimaschutzgesetz"], 1).tolist() == parts
    assert stems.codes(["klimaschutzgesetzes"], 1).tolist() == parts
    assert stems.codes(["klimaschutzamt"], 1).tolist() == [UNKNOWN]
    assert stems.codes(["klimaschutzgesetz"], 0).tolist() == [UNKNOWN]  # English has no such compounds
    linked = [part_code(code) for code in stems.codes(["theorie", "bank"], 1).tolist()]
    assert stems.codes(["theoriesbank"], 1).tolist() == linked


def test_a_text_is_in_the_language_of_most_of_its_function_words(stems: Stems) -> None:
    assert stems.language_of(words_of("the law of the banks and their clients")) == 0
    assert stems.language_of(words_of("Das Gesetz über die Banken und ihre Kunden")) == 1
    assert stems.language_of(words_of("Memristor")) == 0
    assert Stems.of_names(("de",), NAMES).language_of(words_of("the law of the banks")) == 0


def test_forms_that_were_met_before_change_nothing(stems: Stems) -> None:
    before = stems.codes(["klimaschutzgesetz", "banken", "neu"], 1).tolist()
    copied = copy.deepcopy(stems)
    for one in (stems, copied):
        assert one.codes(["klimaschutzgesetz", "banken", "neu"], 1).tolist() == before
