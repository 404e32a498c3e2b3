"""What a search may try, as people write it."""

from __future__ import annotations

from pathlib import Path

import pytest

import longtail.tuning
from longtail.errors import ConfigError
from longtail.methods import METHODS, create_method
from longtail.settings import with_values
from longtail.tuning import Choices, Range, default_space, read_space


def test_choices_and_ranges_are_read() -> None:
    texts = ["training.epochs=5,10", "kind = linear, cosine", "rate=5e-5..2e-4:log", "n=3..9", "share=0..0.5"]
    assert read_space(texts) == (
        Choices("training.epochs", (5, 10)),
        Choices("kind", ("linear", "cosine")),
        Range("rate", 5e-5, 2e-4, log=True),
        Range("n", 3, 9),
        Range("share", 0, 0.5),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate", "must be option=values"),
        ("=3,4", "must be option=values"),
        ("rate=", "must be option=values"),
        ("rate=3", "there must be two values to try, got '3'; one is set with `settings`"),
        ("rate=a..b", "from number to number"),
        ("rate=2..1", "a range must go up, got '2..1'"),
        ("rate=0..1:log", "a range must go up, from above 0 with :log"),
        ("rate=1..2:square", "may end in :log, got ':square'"),
        ("rate=true..false", "from number to number"),
    ],
)
def test_what_cannot_be_tried_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        read_space([text])


def test_an_option_is_tried_once() -> None:
    with pytest.raises(ConfigError, match="rate must be tried once"):
        read_space(["rate=1,2", "rate=3,4"])


@pytest.mark.parametrize("method", sorted(file.stem for file in Path(longtail.tuning.__file__).parent.glob("*.toml")))
def test_what_is_tried_by_default_can_be_set(method: str) -> None:
    plain = create_method(method).options.plain()
    for tried in default_space(method):
        for value in tried.ends:
            assert create_method(method, with_values(plain, {tried.path: value}))


def test_every_method_has_something_to_try() -> None:
    assert all(default_space(method) for method in METHODS.names() if method != "auto")  # which chooses by itself
    with pytest.raises(ConfigError, match="nothing is known to try for method 'mine'; say what with `tries`"):
        default_space("mine")
