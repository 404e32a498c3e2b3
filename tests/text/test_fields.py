"""Options of text features, and blocks from names of fields."""

from __future__ import annotations

import pytest

from longtail.errors import ConfigError
from longtail.text.fields import FieldOptions, TfidfOptions, blocks_of


def test_the_default_is_one_block_of_single_words_of_the_text() -> None:
    (block,) = TfidfOptions().blocks
    assert (block.column, block.words, block.chars, block.min_df, block.sublinear) == (
        "text",
        (1, 1),
        None,
        "auto",
        True,
    )


def test_options_survive_the_way_through_plain_data() -> None:
    options = TfidfOptions(
        blocks=(
            FieldOptions(words=(1, 2), min_df=3, max_df=0.5, stop_words=("der", "die"), max_words=300),
            FieldOptions(column="title", chars=(3, 5), weight=2.5, min_df=0.01, max_df=1000, lowercase=False),
            FieldOptions(stop_words="german", numbers=True, max_features=10, sublinear=False),
        )
    )
    assert TfidfOptions.of(options.plain()) == options
    assert isinstance(TfidfOptions.of(options.plain()).blocks[0].max_df, float)
    assert isinstance(TfidfOptions.of(options.plain()).blocks[1].max_df, int)


def test_chars_stand_for_words() -> None:
    block = FieldOptions.of({"chars": [5, 5]})
    assert (block.words, block.chars, block.ngrams) == (None, (5, 5), (5, 5))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"words": [1, 1], "chars": [5, 5]}, "either words or chars"),
        ({"words": None}, "either words or chars"),
        ({"words": [2, 1]}, "must not be longer"),
        ({"words": [0, 1]}, "words"),
        ({"chars": [3, 5], "numbers": True}, "about words"),
        ({"chars": [3, 5], "stop_words": "german"}, "about words"),
        ({"weight": 0}, "weight"),
        ({"min_df": 0.5, "max_df": 1.5}, "max_df"),
        ({"stop_words": "klingon"}, "stop_words"),
        ({"colunm": "title"}, "did you mean 'column'"),
    ],
)
def test_options_that_make_no_sense_are_refused(values: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        FieldOptions.of(values)


def test_at_least_one_block_is_needed() -> None:
    with pytest.raises(ConfigError, match="blocks"):
        TfidfOptions.of({"blocks": []})


def test_fields_become_blocks() -> None:
    title, text = blocks_of("title, text")
    assert title == FieldOptions(column="title")
    assert text == FieldOptions()
    (title,) = blocks_of(["title"], FieldOptions(chars=(5, 5), weight=0.5))
    assert title == FieldOptions(column="title", chars=(5, 5), weight=0.5)


@pytest.mark.parametrize("fields", ["", "title,,text", "title,title", []])
def test_fields_must_be_different_names(fields: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="fields must be different column names"):
        blocks_of(fields)
