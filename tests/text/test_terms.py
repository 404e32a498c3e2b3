"""Counters of terms and their merging."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.errors import DataError
from longtail.text.columns import Bytes, bytes_of
from longtail.text.fields import FieldOptions
from longtail.text.terms import Analysis, TermCounter, choose_terms


def as_bytes(texts: list[str]) -> Bytes:
    return bytes_of(pa.chunked_array([texts], pa.string()), range(len(texts)), True)


def counter_of(texts: list[str], options: FieldOptions | None = None) -> TermCounter:
    counter = TermCounter(Analysis.of(options or FieldOptions()))
    if texts:
        counter.count(as_bytes(texts))
    return counter


def counted_as_lists(counter: TermCounter, texts: list[str]) -> list[dict[str, int]]:
    indptr, ids, counts = counter.count(as_bytes(texts))
    names = counter.terms.to_pylist()
    return [
        {names[ids[at]]: int(counts[at]) for at in range(start, stop)} for start, stop in itertools.pairwise(indptr)
    ]


def test_a_counter_grows_as_it_must() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"größe{n}" * 5 for n in rng.integers(0, 300, 20)) for _ in range(50)]
    found = counted_as_lists(TermCounter(Analysis.of(FieldOptions()), 2), texts)
    assert found == [{word: text.split().count(word) for word in text.split()} for text in texts]


@settings(max_examples=50)
@given(st.lists(st.lists(st.text("abÄ ", max_size=12), max_size=6), min_size=1, max_size=4), st.integers(1, 9))
@example([["aa bb", "cc"], ["bb bb bb", "cc aa"]], 1)
def test_counters_merge_to_what_one_counter_finds(parts: list[list[str]], max_features: int) -> None:
    options = FieldOptions(words=(1, 2), min_df=1, max_features=max_features)
    everything = [text for part in parts for text in part]
    one = counter_of(everything, options)
    counters = [counter_of(part, options) for part in parts]
    if not one.n_terms:
        return
    names = [counter.terms.to_pylist() for counter in counters]
    joined = counter_of([], options)
    ids = [joined.absorb(counter.found()) for counter in counters]
    assert [[joined.terms.to_pylist()[at] for at in own] for own in ids] == names
    table, terms, df, features = choose_terms(joined, options, len(everything))
    own_table, own_terms, own_df, _own_features = choose_terms(one, options, len(everything))
    assert terms.to_pylist() == own_terms.to_pylist()
    assert df.tolist() == own_df.tolist()
    assert all(np.array_equal(left, right) for left, right in zip(table.table, own_table.table, strict=True))
    for mine, own in zip(names, ids, strict=True):
        assert [terms.to_pylist()[feature] for feature in features[own] if feature >= 0] == [
            name for name in mine if name in terms.to_pylist()
        ]


def test_features_are_ordered_by_falling_document_frequency_then_by_term() -> None:
    texts = ["zz yy xx", "zz yy ww", "zz xx", "vv vv vv"]
    _, terms, df, _ = choose_terms(counter_of(texts), FieldOptions(min_df=1), len(texts))
    assert terms.to_pylist() == ["zz", "xx", "yy", "vv", "ww"]
    assert df.tolist() == [3, 2, 2, 1, 1]


def test_max_features_keeps_the_terms_that_occur_most_often() -> None:
    texts = ["zz yy xx", "zz yy ww", "zz xx", "vv vv vv vv"]
    options = FieldOptions(min_df=1, max_features=3)
    _, terms, _, _ = choose_terms(counter_of(texts), options, len(texts))
    assert terms.to_pylist() == ["zz", "xx", "vv"]  # vv: four times, zz: three, xx before yy: two


@pytest.mark.parametrize(
    ("min_df", "max_df", "expected"),
    [(2, 1.0, "dd cc bb"), (0.5, 1.0, "dd cc"), (1, 2, "bb aa"), (1, 0.75, "cc bb aa"), ("auto", 3, "cc bb")],
)
def test_document_frequency_is_bounded_by_count_or_share(min_df: float, max_df: float, expected: str) -> None:
    texts = ["dd cc bb aa", "dd cc bb", "dd cc", "dd", "", ""]
    options = FieldOptions(min_df=min_df, max_df=max_df)
    texts = texts[:4] if max_df == 0.75 else texts
    _, terms, _, _ = choose_terms(counter_of(texts), options, len(texts))
    assert " ".join(terms.to_pylist()) == expected


def test_auto_keeps_every_term_where_none_occurs_twice() -> None:
    _, terms, _, _ = choose_terms(counter_of(["bb aa", "cc"]), FieldOptions(), 2)
    assert terms.to_pylist() == ["aa", "bb", "cc"]


def test_nothing_left_says_which_option_to_relax() -> None:
    with pytest.raises(DataError, match=r"none of 3 terms .*min_df=2 drops 3 .*max_df=1.0 0; lower min_df or raise"):
        choose_terms(counter_of(["bb aa", "cc"]), FieldOptions(min_df=2), 2)
    with pytest.raises(DataError, match=r"column 'text', words 1–1.* max_df=1 1; lower"):
        choose_terms(counter_of(["aa", "aa"]), FieldOptions(min_df=1, max_df=1), 2)


def test_texts_without_terms_say_so() -> None:
    with pytest.raises(DataError, match=r"got none \(column 'text'"):
        choose_terms(counter_of(["", "a b"]), FieldOptions(), 2)
    with pytest.raises(DataError, match="got none but stop words"):
        options = FieldOptions(stop_words="english")
        choose_terms(counter_of(["the", "of it"], options), options, 2)


def test_stop_words_are_read_like_texts() -> None:
    options = FieldOptions(stop_words=("Don't", "ΟΔΟΣ", "x"), words=(1, 2))
    assert counted_as_lists(counter_of([], options), ["do not, DON the οδος way x"]) == [
        {word: 1 for word in ("do", "not", "the", "way", "do not", "not the", "the way")}
    ]
