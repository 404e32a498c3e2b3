"""Counts beside published counts, figures beside published figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.dataset import Dataset, Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.published import DataCounts, Result
from longtail.reproduce import Check, check_counts, compare, find_data, list_lengths, need_same


def toys() -> Dataset:
    """Four training texts with six labels in all; one label only in test."""
    train = (["one", "two", "three", "four"], [["a", "b"], ["a"], ["b", "c"], ["c"]])
    return Dataset.of({"train": train, "test": (["five"], [["a", "d"]])})


def counts(**changed: object) -> DataCounts:
    own = {"title": "Toys", "n_train": 4, "n_test": 1, "n_labels": 4, "labels_per_text": 1.5, "texts_per_label": 1.5}
    return DataCounts.of(own | changed)


def wrong(dataset: Dataset, expected: DataCounts) -> dict[str, Check]:
    return {check.what: check for check in check_counts(dataset, expected) if not check.agrees}


def result(tolerance: float = 0.5, **metrics: float) -> Result:
    values = {name.replace("_", "@"): value for name, value in metrics.items()}
    about = {"preset": "linear/fast", "data": "toys", "kind": "single", "source": "our notes"}
    return Result.of({**about, "metrics": values, "tolerance": tolerance})


def test_the_same_counts_agree() -> None:
    checks = check_counts(toys(), counts())
    assert [check.what for check in checks] == [
        "training texts",
        "test texts",
        "labels",
        "labels per text",
        "texts per label",
    ]
    assert all(check.agrees for check in checks)
    need_same("toys", counts(), checks)


@pytest.mark.parametrize(
    ("changed", "what", "told"),
    [
        ({"n_train": 1234}, "training texts", "training texts: expected 1,234, got 4"),
        ({"n_test": 2}, "test texts", "test texts: expected 2, got 1"),
        ({"n_dev": 7}, "dev texts", "dev texts: expected 7, got none"),
        ({"n_labels": 5}, "labels", "labels: expected 5, got 4, 3 in train"),
        ({"labels_per_text": 2.0}, "labels per text", "labels per text: expected 2.00, got 1.50"),
    ],
)
def test_a_count_that_differs_is_named_with_both_numbers(changed: dict[str, float], what: str, told: str) -> None:
    expected = counts(**({"texts_per_label": None} | changed))
    found = wrong(toys(), expected)
    assert list(found) == [what]
    assert str(found[what]) == told
    with pytest.raises(DataError, match=rf"the data are not toys \(Toys\): {told}; go on all the same with `force`"):
        need_same("toys", expected, check_counts(toys(), expected))


def test_where_counts_alone_told_which_data_these_are_the_next_step_is_to_name_them() -> None:
    expected = counts(n_train=5)
    with pytest.raises(
        DataError, match=r"the data only come near toys .* with `force`, or name the data set with `named`"
    ):
        need_same("toys", expected, check_counts(toys(), expected), guessed=True)


def test_labels_may_be_counted_in_all_texts_in_train_or_as_listed() -> None:
    listed = toys()
    vocabulary = listed.vocabulary.extended(["e"])
    listed = Dataset("toys", {name: split.over(vocabulary) for name, split in listed.splits.items()}, vocabulary)
    free = {"texts_per_label": None}
    agrees = {n: not wrong(listed, counts(n_labels=n, **free)) for n in (2, 3, 4, 5, 6)}
    assert agrees == {2: False, 3: True, 4: True, 5: True, 6: False}
    assert wrong(listed, counts(n_labels=6, **free))["labels"].got == "4, 5 listed, 3 in train"


def test_another_known_number_of_labels_agrees() -> None:
    assert not wrong(toys(), counts(n_labels=9, other_n_labels=[8, 3], texts_per_label=None))
    told = wrong(toys(), counts(n_labels=9, other_n_labels=[8], texts_per_label=None))["labels"]
    assert told.expected == "9 or 8"


def test_means_may_differ_as_much_as_papers_round_them() -> None:
    assert not wrong(toys(), counts(labels_per_text=1.52, texts_per_label=1.48))
    assert list(wrong(toys(), counts(labels_per_text=1.56))) == ["labels per text"]


def test_features_are_counted_where_data_come_with_them() -> None:
    dataset = toys()
    features = sp.csr_matrix(np.ones((4, 6), np.float32))
    train = Split(dataset.train.texts, dataset.train.labels, dataset.vocabulary, features)
    rich = Dataset("toys", {**dataset.splits, "train": train}, dataset.vocabulary)
    assert not wrong(rich, counts(n_features=6))
    assert list(wrong(rich, counts(n_features=7))) == ["features"]
    assert not wrong(dataset, counts(n_features=7))


def test_data_without_a_training_part_differ() -> None:
    alone = Dataset("toys", {"test": toys().test}, Vocabulary.of(["a", "b", "c", "d"]))
    assert wrong(alone, counts())["training texts"].got == "none"


def test_the_data_set_whose_counts_agree_is_found_and_else_the_nearest(tiny: Callable[..., Dataset]) -> None:
    same, near, far = counts(), counts(n_test=5), counts(n_test=5, n_train=900)
    assert find_data(toys(), {"far": far, "near": near, "same": same}) == "same"
    assert find_data(toys(), {"far": far, "near": near}) == "near"
    small, large = counts(n_train=70), counts(n_train=9000)
    assert find_data(tiny(), {"large": large, "small": small}) == "small", "all counts differ, one is nearer"


def test_figures_stand_beside_the_published_ones() -> None:
    found = compare({"P@1": 0.8250, "P@5": 0.57888, "R@3": 1.0}, result(P_1=82.12, P_5=57.89))
    assert [row._asdict() for row in found.rows] == [
        {"metric": "P@1", "ours": 82.5, "published": 82.12, "difference": 0.38, "verdict": "agrees"},
        {"metric": "P@5", "ours": pytest.approx(57.888), "published": 57.89, "difference": 0.0, "verdict": "agrees"},
    ]
    assert found.sentence() == "agrees: no figure differs by more than 0.5"
    assert found.plain()["verdict"] == "agrees"
    assert found.plain()["source"] == "our notes"


@pytest.mark.parametrize(
    ("ours", "verdict", "sentence"),
    [
        ((50.5, 30.0), "agrees", "agrees: no figure differs by more than 0.5"),
        ((50.51, 30.0), "above", "above: P@1 by more than 0.5"),
        ((49.49, 29.0), "below", "below: P@1, P@3 by more than 0.5"),
        ((60.0, 29.0), "below", "below: P@3 by more than 0.5"),
    ],
)
def test_one_figure_that_falls_short_is_enough_to_be_below(
    ours: tuple[float, float], verdict: str, sentence: str
) -> None:
    found = compare({"P@1": ours[0] / 100, "P@3": ours[1] / 100}, result(P_1=50.0, P_3=30.0))
    assert found.verdict == verdict
    assert found.sentence() == sentence


@given(
    ours=st.floats(0, 1),
    published=st.integers(0, 10_000).map(lambda n: n / 100),
    tolerance=st.integers(1, 500).map(lambda n: n / 100),
)
def test_a_verdict_says_on_which_side_of_the_tolerance_a_figure_is(
    ours: float, published: float, tolerance: float
) -> None:
    [row] = compare({"P@1": ours}, result(tolerance, P_1=published)).rows
    assert row.difference == pytest.approx(100 * ours - published, abs=0.00501)
    assert (row.verdict == "agrees") == (abs(row.difference) <= tolerance)
    assert (row.verdict == "above") == (row.difference > tolerance)
    assert (row.verdict == "below") == (row.difference < -tolerance)


def test_a_run_that_is_not_to_be_compared_has_no_verdict() -> None:
    found = compare({"P@1": 0.5}, result(P_1=50.0), judged=False)
    assert found.verdict is None
    assert found.rows[0].verdict is None
    assert found.sentence().startswith("no verdict")


def test_gains_are_compared_as_gains() -> None:
    gains = result(P_1=4.27).model_copy(update={"base": {"P@1": 80.0}})
    [row] = compare({"P@1": 0.84}, gains).rows
    assert (row.ours, row.difference, row.verdict) == (pytest.approx(5.0), 0.73, "above")
    [row] = compare({"P@1": 0.838}, gains).rows
    assert row.verdict == "agrees", "half a point of 80 is a gain of 0.625"


def test_all_list_lengths_of_several_results_are_measured() -> None:
    assert list_lengths([result(P_5=1.0, R_3=2.0), result(P_1=1.0, P_5=1.0)]) == (1, 3, 5)
