"""Folds of training texts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Split
from longtail.stacking.folds import folds_of, n_asked_folds, texts_of_folds


def split_of(texts: list[str]) -> Split:
    return Split.of(texts, [["a", "b"][number % 2 :] for number in range(len(texts))])


def test_copies_of_a_text_are_in_the_same_fold_whatever_their_case_and_white_space() -> None:
    texts = [f"text {number}" for number in range(50)] + [f"  Text   {number} " for number in range(50)]
    folds = folds_of(split_of(texts), 5, seed=3)
    assert (folds[:50] == folds[50:]).all()


def test_folds_are_about_equally_large_and_follow_from_the_seed() -> None:
    split = split_of([f"text {number}" for number in range(101)])
    folds = folds_of(split, 4, seed=1)
    assert sorted(np.bincount(folds).tolist()) == [25, 25, 25, 26]
    assert (folds == folds_of(split, 4, seed=1)).all()
    assert (folds != folds_of(split, 4, seed=2)).any()


def test_data_of_features_alone_are_told_apart_by_their_features() -> None:
    features = sp.csr_matrix(np.repeat(np.eye(10, dtype=np.float32), 2, axis=0))
    split = split_of([""] * 20)
    folds = folds_of(Split(split.texts, split.labels, split.vocabulary, features), 5, seed=0)
    assert (folds[::2] == folds[1::2]).all()
    assert np.bincount(folds).tolist() == [4] * 5


def test_no_more_folds_are_asked_about_than_it_takes() -> None:
    folds = np.arange(100) % 5
    assert np.unique(folds[texts_of_folds(folds, 2, 1000, seed=0)]).tolist() == [0, 1]
    assert np.unique(folds[texts_of_folds(folds, 2, 21, seed=0)]).tolist() == [0, 1]
    assert texts_of_folds(folds, 2, 20, seed=0).tolist() == np.flatnonzero(folds == 0).tolist()
    assert [n_asked_folds(100, 5, 2, most) for most in (1000, 21, 20, 1)] == [2, 2, 1, 1]
    drawn = texts_of_folds(folds, 2, 7, seed=0)
    assert len(drawn) == 7 and set(folds[drawn].tolist()) == {0}
