"""Names that are probably one label written twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.similar import SHORTEST_ENDING, SHORTEST_INSIDE, near_names, same_names


@pytest.mark.parametrize(
    "one, other",
    [("E-Mail", "email"), ("Text  editing", "text editing"), ("Ｗide", "wide"), ("x_y", "X Y"), ("!", "!")],
)
def test_names_that_differ_by_case_punctuation_or_spaces_are_the_same(one: str, other: str) -> None:
    assert same_names([one, "between", other]) == [[0, 2]]


@pytest.mark.parametrize(
    "one, other", [("C", "C++"), ("C", "C#"), ("version 1.5", "version 15"), ("?", "!"), ("a", "b")]
)
def test_names_whose_signs_matter_are_not_the_same(one: str, other: str) -> None:
    assert same_names([one, other]) == []


@pytest.mark.parametrize(
    "one, other",
    [
        ("Colour", "Color"),
        ("Trees", "Tree"),
        ("old trees", "old tree"),
        ("Café au lait", "Cafe au lait"),
        ("Bäume", "Baume"),
    ],
)
def test_names_that_differ_by_a_letter_or_an_accent_are_near(one: str, other: str) -> None:
    assert near_names([one, "something else", other]) == [(0, 2)]
    assert near_names([other, "something else", one]) == [(0, 2)]


@pytest.mark.parametrize(
    "one, other",
    [
        ("food industry", "wood industry"),  # a changed letter
        ("migration", "emigration"),  # another first letter
        ("bear", "bar"),  # short words
        ("Louis X", "Louis XI"),
        ("Windows 95", "Windows 9"),
        ("E-Mails", "emails"),  # the same, not near
        ("", "a"),
    ],
)
def test_names_that_are_merely_similar_are_left_alone(one: str, other: str) -> None:
    assert near_names([one, other]) == []


def test_a_name_without_any_sign_is_compared_with_nothing() -> None:
    assert near_names(["", "", "??"]) == [] and same_names([]) == [] and near_names([]) == []


def test_near_names_are_found_across_blocks() -> None:
    names = ["colours", "cinema", "houses", "house", "color", "colors"]
    assert near_names(names, block_names=2) == near_names(names) == [(0, 5), (2, 3), (4, 5)]


@given(st.lists(st.text("abc", min_size=3, max_size=8), unique=True, max_size=12))
def test_near_names_agree_with_comparing_all_pairs(names: list[str]) -> None:
    def near(one: str, other: str) -> bool:
        longer, shorter = sorted((one, other), key=len, reverse=True)
        return any(
            longer[:i] + longer[i + 1 :] == shorter
            and len(longer) >= (SHORTEST_ENDING if i == len(longer) - 1 else SHORTEST_INSIDE)
            for i in range(1, len(longer))
        )

    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names)) if near(names[i], names[j])]
    assert near_names(names) == pairs
