"""Alpha beside the worked examples of Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", and beside a
plain reference that looks at every pair of values."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.review.agreement import alpha_of_labels, alpha_of_sets

FOUR_OBSERVERS = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def units(observers: list[str]) -> list[list[set[str]]]:
    return [[{value} for value in column if value != "."] for column in zip(*observers, strict=True)]


def test_two_observers_of_ten_yes_no_questions_as_worked_by_krippendorff() -> None:
    answers = zip("0100000010", "1110010000", strict=True)
    texts = [[{"x"} if value == "1" else set() for value in pair] for pair in answers]
    [agreement] = alpha_of_labels(texts)
    assert agreement.alpha == pytest.approx(0.095, abs=5e-4)
    assert agreement.n_texts == 5
    assert alpha_of_sets(texts) == pytest.approx(agreement.alpha)


def test_four_observers_with_gaps_as_worked_by_krippendorff() -> None:
    assert alpha_of_sets(units(FOUR_OBSERVERS)) == pytest.approx(0.743, abs=5e-4)


def test_agreement_is_one_chance_is_about_zero_and_nothing_to_compare_is_none() -> None:
    assert alpha_of_sets([[{"a"}, {"a"}], [{"b"}, {"b"}]]) == 1
    assert alpha_of_sets([[{"a"}, {"b"}], [{"b"}, {"a"}]]) < 0  # type: ignore[operator]
    assert alpha_of_sets([[{"a"}], [{"b"}]]) is None
    assert alpha_of_sets([[{"a"}, {"a"}]]) is None
    assert alpha_of_sets([]) is None
    assert alpha_of_labels([[{"a"}]]) == []


def plain_alpha(texts: list[list[frozenset[str]]]) -> float | None:
    def distance(a: frozenset[str], b: frozenset[str]) -> float:
        return 1 - len(a & b) / len(a | b) if a | b else 0.0

    seen = [sets for sets in texts if len(sets) > 1]
    values = [labels for sets in seen for labels in sets]
    n = len(values)
    if n == 0:
        return None
    observed = sum(distance(a, b) / (len(sets) - 1) for sets in seen for a, b in permutations(sets, 2)) / n
    expected = sum(distance(a, b) for a, b in permutations(values, 2)) / (n * (n - 1))
    return None if expected == 0 else 1 - observed / expected


TEXTS = st.lists(st.lists(st.frozensets(st.sampled_from("abcd"), max_size=3), max_size=4), max_size=8)


@given(TEXTS)
def test_alpha_of_sets_is_that_of_every_pair(texts: list[list[frozenset[str]]]) -> None:
    expected = plain_alpha(texts)
    assert alpha_of_sets(texts) == (None if expected is None else pytest.approx(expected, abs=1e-9))


@given(TEXTS)
def test_alpha_of_a_label_is_that_of_every_pair_of_yes_and_no(texts: list[list[frozenset[str]]]) -> None:
    for agreement in alpha_of_labels(texts):
        alone = [[labels & {agreement.label} for labels in sets] for sets in texts]
        expected = plain_alpha(alone)
        assert agreement.alpha == (None if expected is None else pytest.approx(expected, abs=1e-9))
