"""Buckets by frequency (docs/methods/aplc-xlnet.md#label-buckets, #invariant-7)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.labels.buckets import BucketOptions, Buckets, build_buckets

counts_of_labels = st.lists(st.integers(0, 5), min_size=1, max_size=40)
some_shares = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(lambda n: tuple(x / sum(n) for x in n))


def even(n_labels: int, n_buckets: int) -> list[int]:
    options = BucketOptions(shares=(1 / n_buckets,) * n_buckets)
    return build_buckets(np.ones(n_labels), options).edges.tolist()


def test_frequent_labels_come_first_and_ties_go_by_label_id() -> None:
    found = build_buckets(np.array([1, 4, 0, 4, 1]), BucketOptions())
    assert found.order.tolist() == [1, 3, 0, 4, 2]
    assert found.edges.tolist() == [0, 2, 5]
    assert found.sizes.tolist() == [2, 3]
    assert found.order.dtype == found.edges.dtype == np.int64


@given(counts_of_labels, some_shares)
def test_every_label_is_in_exactly_one_bucket_that_is_not_empty(counts: list[int], shares: tuple[float, ...]) -> None:
    found = build_buckets(np.array(counts), BucketOptions(shares=shares))
    assert sorted(found.order.tolist()) == list(range(len(counts)))
    assert (found.edges[0], found.edges[-1]) == (0, len(counts))
    assert (found.sizes > 0).all()
    assert len(found.sizes) <= len(shares)
    assert (np.diff(np.array(counts)[found.order]) <= 0).all()


@given(counts_of_labels)
def test_from_label_to_place_and_back_is_the_same_label(counts: list[int]) -> None:
    found = build_buckets(np.array(counts), BucketOptions())
    labels = np.arange(found.n_labels)
    np.testing.assert_array_equal(found.order[found.places()[labels]], labels)


def test_published_cuts_come_from_equal_shares() -> None:
    assert even(3956, 2) == [0, 1978, 3956]
    assert even(13330, 2) == [0, 6665, 13330]
    assert even(30938, 2) == [0, 15469, 30938]
    assert even(501008, 4) == [0, 125252, 250504, 375756, 501008]
    assert even(670091, 4)[:3] == [0, 167522, 335045]  # the third is 502566 in print: give it as a cut


def test_shares_that_are_no_binary_fractions_still_cut_where_they_should() -> None:
    assert build_buckets(np.ones(10), BucketOptions(shares=(0.1, 0.2, 0.7))).edges.tolist() == [0, 1, 3, 10]


@pytest.mark.parametrize(
    ("n_labels", "n_buckets", "edges"),
    [(1, 2, [0, 1]), (2, 2, [0, 1, 2]), (2, 4, [0, 1, 2]), (3, 4, [0, 1, 2, 3]), (7, 1, [0, 7])],
)
def test_buckets_that_would_be_empty_are_left_out(n_labels: int, n_buckets: int, edges: list[int]) -> None:
    assert even(n_labels, n_buckets) == edges


def test_cuts_win_over_shares() -> None:
    found = build_buckets(np.ones(10), BucketOptions(shares=(0.5, 0.5), cuts=(2, 9)))
    assert found.edges.tolist() == [0, 2, 9, 10]
    assert build_buckets(np.ones(10), BucketOptions(cuts=())).edges.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shares": [0.5, 0.4]}, "add up to 1, got"),
        ({"shares": [1.5, -0.5]}, "above 0"),
        ({"shares": []}, "shares must"),
        ({"cuts": [3, 3]}, "cuts must rise"),
        ({"cuts": [0, 3]}, "cuts.0 must"),
    ],
)
def test_cuts_that_cannot_be_are_named(values: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BucketOptions.of(values)


def test_cuts_beyond_the_labels_are_an_error_that_says_how_many_labels_there_are() -> None:
    with pytest.raises(ConfigError, match=r"below the number of labels, 10, got \[4, 10\]"):
        build_buckets(np.ones(10), BucketOptions(cuts=(4, 10)))


def test_no_labels_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one label"):
        build_buckets(np.zeros(0), BucketOptions())


def test_arrays_bring_back_the_buckets() -> None:
    found = build_buckets(np.array([1, 4, 0]), BucketOptions())
    back = Buckets.from_arrays(found.arrays(), found.n_labels)
    assert (back.order.tolist(), back.edges.tolist()) == (found.order.tolist(), found.edges.tolist())
