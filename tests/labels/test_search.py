"""Labels are found by any of their names."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.vocabulary import Vocabulary
from longtail.labels.search import LabelSearch, normalised

NAMES = ["Industrie", "Industrieanlage", "Chemische Industrie", "Großindustrie", "Äpfel", "Industrial design", "Iron"]


def search(
    names: list[str], alternatives: dict[str, list[str]] | None = None, counts: list[int] | None = None
) -> LabelSearch:
    ids = [str(number) for number in range(len(names))]
    vocabulary = Vocabulary.of(ids, dict(zip(ids, names, strict=True)), alternatives or {})
    return LabelSearch(vocabulary, np.array(counts or [0] * len(names), np.int64))


def names_of(searched: LabelSearch, query: str, n: int = 20) -> list[str]:
    return [match.name for match in searched.find(query, n)]


def test_equal_names_come_first_then_beginnings_of_names_of_words_and_what_holds_the_query() -> None:
    found = names_of(search(NAMES), "industrie")
    assert found[:4] == ["Industrie", "Industrieanlage", "Chemische Industrie", "Großindustrie"]
    assert "Iron" not in found


def test_frequent_labels_come_before_rare_ones() -> None:
    assert names_of(search(["ab", "ac", "ad"], counts=[1, 9, 4]), "a") == ["ac", "ad", "ab"]


def test_typing_errors_are_forgiven() -> None:
    assert names_of(search(NAMES), "indstrieanlge", 1) == ["Industrieanlage"]
    assert names_of(search(NAMES), "iron") == ["Iron"]
    assert names_of(search(NAMES), "xyzzy") == []


def test_accents_and_capitals_do_not_matter() -> None:
    assert names_of(search(NAMES), "APFEL") == ["Äpfel"]
    assert names_of(search(NAMES), "grossindustrie", 1) == ["Großindustrie"]


def test_a_label_is_found_by_its_other_names_and_only_once() -> None:
    searched = search(["car", "boat"], {"0": ["automobile", "auto"], "1": ["ship"]})
    [match] = searched.find("auto")
    assert (match.label, match.name, match.similarity) == (0, "auto", 1.0)
    assert [match.label for match in searched.find("ship")] == [1]


def test_few_are_enough_and_nothing_is_found_by_nothing() -> None:
    assert len(search(NAMES).find("i", 2)) == 2
    assert search(NAMES).find("  ") == search(NAMES).find("a", 0) == search([]).find("a") == []


@given(st.lists(st.text(max_size=12), min_size=1, max_size=12), st.text(max_size=12), st.integers(1, 5))
def test_whatever_is_typed_the_best_match_is_a_name_that_holds_it(names: list[str], query: str, n: int) -> None:
    matches = search(names).find(query, n)
    assert len(matches) <= n
    assert len({match.label for match in matches}) == len(matches)
    typed = " ".join(normalised(query).split())
    holding = [name for name in names if typed and typed in normalised(name)]
    assert sum(match.similarity == 1 and typed in normalised(match.name) for match in matches) == min(len(holding), n)
