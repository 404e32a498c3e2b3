"""Options as TOML and as `path=value`."""

from __future__ import annotations

import tomllib
from typing import Any, Literal

import pytest
from pydantic import PositiveInt

from longtail.errors import ConfigError
from longtail.methods import create_method
from longtail.methods.linear import LinearOptions
from longtail.options import Ablation, Options, help_of
from longtail.presets import load_preset, preset_names
from longtail.settings import options_toml, with_settings


class Inner(Options):
    """A group."""

    size: PositiveInt = 3
    """How many, and a long
    line more."""
    word: str | None = None
    """A word."""


class Outer(Options):
    """All groups."""

    parts: tuple[Inner, ...] = (Inner(), Inner(size=4))
    """Some parts."""
    one: Inner = Inner()
    """One part."""
    name: str = 'a "quoted" name'
    """The name."""
    undocumented: bool = True


class Heir(Inner):
    """Has what its parent has."""

    size: PositiveInt = 5
    more: float = 1e-5
    """Something more."""


def test_toml_shows_values_with_their_help_and_is_read_back() -> None:
    text = options_toml(Outer(), "a title")
    assert text.startswith("# a title\n")
    assert "# How many, and a long line more.\nsize = 3" in text
    assert text.count("# Some parts.") == 1
    assert text.count("[[parts]]") == 2
    assert "# word is not set" in text
    assert Outer.of(tomllib.loads(text)) == Outer()


def test_help_is_that_of_the_class_and_of_its_parents() -> None:
    assert help_of(Heir) == {"size": "How many, and a long line more.", "word": "A word.", "more": "Something more."}


@pytest.mark.parametrize("preset", [None, *preset_names("linear")])
def test_the_toml_of_every_preset_is_read_back(preset: str | None) -> None:
    options = LinearOptions.of(load_preset(preset) if preset else {})
    assert LinearOptions.of(tomllib.loads(options_toml(options))) == options


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("one.size=7", {"one": Inner(size=7)}),
        ("one.word = true blue", {"one": Inner(word="true blue")}),
        ('name="x"', {"name": "x"}),
        ("parts.1.size=9", {"parts": (Inner(), Inner(size=9))}),
        ("parts.*.word=w", {"parts": (Inner(word="w"), Inner(size=4, word="w"))}),
        ("parts=[{size = 1}]", {"parts": (Inner(size=1),)}),
        ('parts=[{"size": 1, "word": "w"}]', {"parts": (Inner(size=1, word="w"),)}),
        ("name=a=b", {"name": "a=b"}),
        ("name=[a: b", {"name": "[a: b"}),
    ],
)
def test_a_setting_changes_what_its_path_names(setting: str, expected: dict[str, Any]) -> None:
    assert Outer.of(with_settings(Outer().plain(), [setting])) == Outer(**expected)


def test_a_kind_of_another_part_leaves_the_options_of_the_old_one_behind() -> None:
    options = create_method("xbert", {"recalls": [{"kind": "bilstm"}], "matcher": {"training": {"epochs": 3}}}).options
    changed = with_settings(options, ["recalls.0.kind=cnn", "recalls.0.n_filters=8", "matcher.training.epochs=2"])
    assert changed["recalls"] == [{"kind": "cnn", "n_filters": 8}]
    schedule = with_settings(options, ["matcher.training.schedule.kind=cosine"])["matcher"]["training"]["schedule"]
    assert schedule == {**options.plain()["matcher"]["training"]["schedule"], "kind": "cosine"}


def test_later_settings_win_and_the_given_options_stay_as_they_are() -> None:
    plain = Outer().plain()
    assert with_settings(plain, ["one.size=1", "one.size=2"])["one"]["size"] == 2
    assert plain == Outer().plain()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("one.size", "must be option=value"),
        ("=3", "must be option=value"),
        ("one..size=3", "must be option=value"),
        ("parts.2.size=3", "'2' must be a number from 0 to 1, or \\*"),
        ("one.siz=3", "unknown option 'one.siz'; did you mean 'size'"),
        ("parts.*.siz=3", "unknown option 'parts.0.siz'; did you mean 'size'"),
        ("one.size=0", "one.size must be greater than 0, got 0"),
        ("one.size.x=0", "one.size must be a valid integer"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_path(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Outer.of(with_settings(Outer().plain(), [setting]))


class Tried(Options):
    """A group with an option that only ablations change."""

    kind: Literal["tried"] = "tried"
    size: PositiveInt = 3
    """How many."""
    mask: Ablation[bool] = True
    """Whether to mask."""


class Method(Options):
    """Groups in all places."""

    one: Tried = Tried(mask=False)
    some: tuple[Tried, ...] = (Tried(),)
    last: Ablation[Tried] = Tried()


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, []),
        ({"one": {"mask": True}}, ["one"]),  # the default of the class, but not here
        ({"some": [{}, {"mask": False}]}, ["some"]),
        ({"last": {"mask": False}}, ["last"]),
        ({"last": {"size": 5}}, ["last"]),
    ],
)
def test_options_of_ablations_are_left_out_where_they_have_their_default(values: Any, shown: list[str]) -> None:
    options = Method.of(values)
    text = options_toml(options, unless_as=[Method()])
    assert Method.of(tomllib.loads(text)) == options
    assert ("mask = " in text) == (bool(shown) and values != {"last": {"size": 5}})
    assert ("[last]" in text) == ("last" in shown)
    assert options_toml(options).count("mask = ") == 2 + len(options.some)


@pytest.mark.parametrize("name", ["lightxml/wiki-500k", "xbert/x-ttention-eurlex-4k", "aplc-xlnet/eurlex-4k"])
def test_what_a_preset_sets_is_shown(name: str) -> None:
    options = create_method(name).options
    text = options_toml(options, unless_as=[type(options)()])
    assert type(options).of(tomllib.loads(text)) == options
    assert len(text) < len(options_toml(options))
