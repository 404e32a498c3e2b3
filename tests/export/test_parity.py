from __future__ import annotations

import numpy as np
import pytest

from longtail.errors import ConfigError
from longtail.export.parity import check, compare, made_texts, same_labels
from longtail.types import NO_LABEL, TopK

SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]


def lists(*labels: int, scores: list[float] = SCORES) -> TopK:
    row = np.array(scores[: len(labels)], np.float32)
    return TopK(np.array([labels], np.int32), np.where(np.array(labels) == NO_LABEL, -np.inf, row)[None].astype("f4"))


MODEL = lists(1, 2, 3, 4, 5, 6, 7)


def test_equal_lists_differ_by_nothing() -> None:
    agreement = compare(MODEL, MODEL)
    assert (agreement.n_texts, agreement.largest_difference, agreement.n_swapped) == (1, 0.0, 0)
    check(agreement)


def test_a_score_that_differs_by_more_than_the_tolerance_is_refused() -> None:
    check(compare(MODEL, lists(1, 2, 3, 4, 5, 6, 7, scores=[0.90009, *SCORES[1:]])))
    with pytest.raises(ConfigError, match=r"within 0.0001.*0.0002"):
        check(compare(MODEL, lists(1, 2, 3, 4, 5, 6, 7, scores=[0.9002, *SCORES[1:]])))


def test_labels_change_places_only_among_scores_that_are_as_close() -> None:
    close = [0.9, 0.8, 0.7, 0.6, 0.50004, 0.5, 0.3]
    agreement = compare(lists(1, 2, 3, 4, 5, 6, 7, scores=close), lists(1, 2, 3, 4, 6, 5, 7, scores=close))
    check(agreement)
    assert agreement.n_swapped == 1
    with pytest.raises(ConfigError, match=r"differs by 0\.1"):
        check(compare(MODEL, lists(1, 2, 3, 4, 6, 5, 7)))
    with pytest.raises(ConfigError, match="differs by inf"):  # a label that the model does not list at all
        check(compare(MODEL, lists(1, 2, 3, 4, 9, 5, 7)))


def test_lists_that_end_together_are_equal_and_others_are_not() -> None:
    short = lists(1, 2, NO_LABEL, NO_LABEL, NO_LABEL)
    check(compare(short, short))
    for one, two in ((short, lists(1, 2, 3, NO_LABEL, NO_LABEL)), (lists(1, 2, 3, NO_LABEL, NO_LABEL), short)):
        with pytest.raises(ConfigError):
            check(compare(one, two))


def test_the_same_labels_in_another_order_are_the_same() -> None:
    assert same_labels(MODEL, lists(5, 4, 3, 2, 1, 6, 7)) == 1.0
    assert same_labels(MODEL, lists(5, 4, 3, 2, 6, 1, 7)) == 0.0


def test_made_texts_have_all_columns_and_many_lengths() -> None:
    table = made_texts(["a", "b"], ["title", "text"])
    assert table.column_names == ["title", "text"]
    assert len({len(text.split()) for text in table["title"].to_pylist()}) == 9
    assert table.equals(made_texts(["a", "b"], ["title", "text"]))
