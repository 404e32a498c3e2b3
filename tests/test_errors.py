from __future__ import annotations

import inspect

import pytest

from longtail import errors
from longtail.errors import LongtailError, did_you_mean

PARENTS = {
    "ConfigError": (ValueError,),
    "DataError": (ValueError,),
    "NotFittedError": (ValueError, AttributeError),
    "MissingExtraError": (ImportError,),
    "ModelFormatError": (ValueError,),
}


@pytest.mark.parametrize("name", PARENTS)
def test_each_error_is_ours_and_what_python_users_expect(name: str) -> None:
    error = getattr(errors, name)
    assert issubclass(error, LongtailError)
    for parent in PARENTS[name]:
        assert issubclass(error, parent)
    assert str(error("what must hold")) == "what must hold"


def test_there_are_no_other_errors() -> None:
    found = {
        name
        for name, error in vars(errors).items()
        if inspect.isclass(error) and issubclass(error, Exception) and error.__module__ == errors.__name__
    }
    assert found == {*PARENTS, "LongtailError"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("lightxlm", "; did you mean 'lightxml'?"),
        ("linaer", "; did you mean 'linear'?"),
        ("lightxml", "; did you mean 'lightxml'?"),
        ("banana", ""),
        ("", ""),
    ],
)
def test_a_close_word_is_suggested(word: str, hint: str) -> None:
    assert did_you_mean(word, ["linear", "lightxml", "xbert"]) == hint
    assert did_you_mean(word, []) == ""
