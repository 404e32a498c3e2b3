"""The chart of characters against Python, character by character."""

from __future__ import annotations

import re
import sys

import numpy as np

from longtail.kernels.characters import CODE, CONTEXT, DIGIT, N_CHARTED, SPACE, WORD, character_chart

KINDS = ((r"\w", WORD), (r"\s", SPACE), (r"\d", DIGIT))


def test_every_charted_character_is_what_python_says_of_its_lower_case() -> None:
    chart = character_chart(True)
    assert len(chart) == N_CHARTED
    for code in range(N_CHARTED):
        if chr(code) not in CONTEXT:
            lower = chr(code).lower()
            expected = ord(lower) | sum(kind for pattern, kind in KINDS if re.match(pattern, lower))
            assert chart[code] == expected, hex(code)


def test_without_lower_case_every_character_stays_as_it_is() -> None:
    chart = character_chart(False)
    assert np.array_equal(chart & CODE, np.arange(N_CHARTED))
    assert chart[ord("Σ")] & WORD and chart[ord("İ")] & WORD


def test_beyond_the_chart_there_are_no_letters_digits_or_spaces() -> None:
    rest = "".join(map(chr, range(N_CHARTED, sys.maxunicode + 1)))
    assert rest.lower() == rest
    assert not re.search(r"[\w\s]", rest)


def test_only_two_letters_need_their_context() -> None:
    longer = {chr(code) for code in range(sys.maxunicode + 1) if len(chr(code).lower()) > 1}
    assert longer | {"Σ"} == set(CONTEXT)
    everything = "".join(chr(code) for code in range(sys.maxunicode + 1) if chr(code) not in CONTEXT)
    assert everything.lower() == "".join(letter.lower() for letter in everything)


def test_lower_case_is_in_lower_case_already() -> None:
    chart = character_chart(True) & CODE
    assert np.array_equal(chart[chart], chart)
