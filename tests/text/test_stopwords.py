"""The packaged stop words."""

from __future__ import annotations

import re

import pytest

from longtail.text.stopwords import STOP_WORDS


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_are_different_words_in_lower_case(language: str) -> None:
    words = STOP_WORDS[language]
    assert len(set(words)) == len(words) > 100
    assert all(re.fullmatch(r"\w\w+", word) and word == word.lower() for word in words)


def test_each_list_is_of_its_language() -> None:
    assert {"the", "of", "which"} <= set(STOP_WORDS["english"])
    assert {"der", "über", "welche"} <= set(STOP_WORDS["german"])
