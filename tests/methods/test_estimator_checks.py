"""scikit-learn's checks of estimators: those that can hold for a method that reads texts, and why others cannot.

Most checks train on arrays of numbers. They run on `NumbersKNN`, which writes each row as words and answers with
arrays, as the checks want; all behind that is what every method has.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from longtail.methods import METHODS
from longtail.methods.knn import KNN

checks = pytest.importorskip("sklearn.utils.estimator_checks")

UNTRAINED = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]
"""For every method as it is."""
TRAINED = [
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_inplace_ensure_writeable",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
]
"""For the one that reads numbers."""
CANNOT = {
    r"check_do_not_raise_errors_in_init_or_set_params": "wrong options are refused at once, not by the next fit",
    r"check_no_attributes_set_in_init": "the checked options stand in `options` from the start",
    r"check_param_validation": "options are checked by their own classes, not by scikit-learn's constraints",
    r"check_(n_features_in|fit1d|fit2d_|dataframe_column|nonsquare|fit_non_neg).*": "texts have no columns of numbers",
    r"check_(complex_data|estimators_(nan_inf|empty_data|partial_fit)|estimator_sparse).*": "texts are not numbers",
    r"check_requires_y_none": "the error speaks of labels, not of y",
    r"check_.*sample_weight.*": "texts have no weights",
    r"check_class(ifier|_weight).*|check_decision_proba.*": "a text has several labels, not one class",
    r"check_non_transformer_estimators_n_iter": "no attribute `n_iter_`",
    r"check_(.*transform|get_feature_names|set_output|global|sparsify).*": "it is no transformer or linear layer",
    r"check_(regressor|outlier|cluster|estimators_data_not_an_array|array_api).*": "it is none of these",
    r"check_(estimator|is_fitted)": "these are tools, not checks",
}
"""The others by name, and why they do not hold or say nothing."""


class NumbersKNN(KNN):
    """Reads rows of numbers as words, and answers with arrays."""

    def fit(self, X: Any, y: Any = None) -> NumbersKNN:  # type: ignore[override]
        return super().fit(_words(X), None if y is None else [[f"label{value}"] for value in np.asarray(y)])

    def predict(self, X: Any) -> NDArray[np.int32]:  # type: ignore[override]
        return self.top_k(_words(X), 1).labels[:, 0]

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # type: ignore[override]
        return np.asarray(super().predict_proba(_words(X)).toarray())

    def score(self, X: Any, y: Any = None) -> float:  # type: ignore[override]
        return super().score(_words(X), [[f"label{value}"] for value in np.asarray(y)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.target_tags.one_d_labels = True, True
        tags.input_tags.one_d_array, tags.target_tags.two_d_labels = False, False
        return tags


def _words(X: Any) -> list[str]:
    return [" ".join(f"column{place}is{int(3 * value)}" for place, value in enumerate(row)) for row in np.asarray(X)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", UNTRAINED)
@pytest.mark.parametrize("name", METHODS.names())
def test_a_check_holds_for_every_method(name: str, check: str) -> None:
    method = METHODS.get(name)
    getattr(checks, check)(method.__name__, method())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", TRAINED)
def test_a_check_that_trains_holds(check: str) -> None:
    getattr(checks, check)("NumbersKNN", NumbersKNN())


def test_no_check_is_left_out_without_a_reason() -> None:
    known = {name for name in dir(checks) if name.startswith("check_")}
    left_out = known - {*UNTRAINED, *TRAINED}
    assert not [name for name in left_out if not any(re.fullmatch(pattern, name) for pattern in CANNOT)]
    assert all(CANNOT.values())
