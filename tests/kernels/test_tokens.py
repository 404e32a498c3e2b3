"""Counting and weighing of terms: native against the plain reference, on all of Unicode."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.kernels.characters import CONTEXT, character_chart
from longtail.kernels.native import tokens as native
from longtail.kernels.reference import tokens as reference

ODD = "aAbZ_ 09٣²Ⅷ\x00\t\n\x1c\x85\u2028\u3000\u0301\u0307\u0345ßẞäÄǅςσЖЀ漢あ𐐀𝔘🙂ȺⱥKÅ\U0001d7d8\ufeff\U0010ffff"
letters = st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"]))
texts_of = st.lists(st.text(letters, max_size=30), max_size=5)
few = settings(max_examples=150)


def as_bytes(texts: list[str]) -> tuple[Any, Any]:
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    return data, np.cumsum([0, *(len(text.encode()) for text in texts)], dtype=np.int64)


class Terms:
    """A table with room for some terms, and a kernel that fills it."""

    def __init__(self, kernels: Any, n_terms: int = 1024, n_letters: int = 1 << 14) -> None:
        self.kernels = kernels
        self.n_terms = 0
        self.slots = np.full(1 << (2 * n_terms - 1).bit_length(), -1, np.int32)
        self.hashes = np.zeros(n_terms, np.uint64)
        self.place = np.zeros(n_terms, np.int32)
        self.df, self.tf, self.ends = (np.zeros(n_terms, np.int64) for _ in range(3))
        self.letters = np.zeros(n_letters, np.uint8)

    def count(
        self, texts: list[str], lowercase: bool = True, chars: bool = False, low: int = 1, high: int = 1,
        numbers: bool = False, max_words: int = 1 << 62, stop: Terms | None = None, learn: bool = True,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        stop = stop or Terms(self.kernels, 1)
        *counted, self.n_terms = self.kernels.count_terms(
            *as_bytes(texts), character_chart(lowercase), chars, low, high, numbers, max_words, stop.slots,
            stop.hashes[: stop.n_terms], learn, self.n_terms, self.slots, self.hashes, self.place,
            self.df, self.tf, self.ends, self.letters,
        )  # fmt: skip
        return tuple(counted)

    def names(self) -> list[str]:
        bounds = pairwise([0, *self.ends[: self.n_terms].tolist()])
        return [self.letters[start:end].tobytes().decode() for start, end in bounds]

    def state(self) -> dict[str, Any]:
        n = self.n_terms
        arrays = {name: getattr(self, name)[:n].tolist() for name in ("hashes", "df", "tf", "ends")}
        return {**arrays, "n_terms": n, "names": self.names(), "slots": self.slots.tolist()}


def agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    for left, right in zip(one, other, strict=True):
        assert left.dtype == right.dtype
        assert left.tolist() == right.tolist()


settings_of_words = st.fixed_dictionaries(
    {"low": st.integers(1, 2), "high": st.integers(2, 3), "numbers": st.booleans(), "lowercase": st.booleans()},
    optional={"max_words": st.integers(1, 4)},
)
settings_of_letters = st.fixed_dictionaries(
    {"chars": st.just(True), "low": st.integers(1, 4), "high": st.integers(4, 6), "lowercase": st.booleans()},
    optional={"max_words": st.integers(1, 4)},
)


@few
@given(texts_of, texts_of, texts_of, st.one_of(settings_of_words, settings_of_letters), st.lists(st.text(letters)))
@example(["Kı ſ ÅNGSTRÖM ẞ", "a\x00b c_d 12 ٣٤ 1a"], [], ["ab"], {"low": 1, "high": 2, "numbers": True}, ["ab"])
def test_native_and_reference_count_alike(
    first: list[str], then: list[str], later: list[str], options: dict[str, Any], stop_words: list[str]
) -> None:
    tables = []
    for kernels in (native, reference):
        lowercase = options.get("lowercase", True)
        clean = str.maketrans(dict.fromkeys(CONTEXT, "")) if lowercase else {}
        first, then, later, stop_words = (
            [text.translate(clean) for text in texts] for texts in (first, then, later, stop_words)
        )
        stop, terms = Terms(kernels), Terms(kernels, 1 << 13, 1 << 17)
        stop.count(stop_words, lowercase)
        counted = [terms.count(texts, stop=stop, **options) for texts in (first, then)]
        learned = terms.state()
        counted.append(terms.count(later, stop=stop, learn=False, **options))
        assert terms.state() == learned
        tables.append((terms, counted))
    assert tables[0][0].state() == tables[1][0].state()
    for one, other in zip(tables[0][1], tables[1][1], strict=True):
        agree(one, other)


@pytest.mark.parametrize("kernels", [native, reference])
@pytest.mark.parametrize("sizes", [(3, 1000), (1000, 13)])
def test_counting_stops_before_the_text_that_finds_no_room(kernels: Any, sizes: tuple[int, int]) -> None:
    terms = Terms(kernels, *sizes)
    indptr, ids, counts = terms.count(["aa bb aa", "", "aa cc dd", "aa"])
    assert indptr.tolist() == [0, 2, 2]
    assert ids.tolist() == [0, 1]
    assert counts.tolist() == [2, 1]
    assert terms.names()[:3] == ["aa", "bb", "cc"][: terms.n_terms]
    assert terms.df[:3].tolist() == [1, 1, 0]
    assert terms.tf[:3].tolist() == [2, 1, 0]


def test_native_and_reference_stop_at_the_same_text() -> None:
    texts = ["äöü bcd efg", "hij klm nop äöü", "qrs", "tuv wxy"]
    for n_terms in range(1, 12):
        for n_letters in range(12, 120, 5):
            one, other = Terms(native, n_terms, n_letters), Terms(reference, n_terms, n_letters)
            agree(one.count(texts, low=1, high=2), other.count(texts, low=1, high=2))
            assert one.state() == other.state()


def test_a_row_may_have_more_terms_than_there_was_room_for_at_first() -> None:
    words = [f"word{number}" for number in range(3000)]
    terms = Terms(native, 4096, 1 << 17)
    indptr, ids, counts = terms.count(["aa aa", " ".join(words + words[::2])])
    assert indptr.tolist() == [0, 1, 3001]
    assert ids.tolist() == list(range(3001))
    assert counts.tolist() == [2, *([2, 1] * 1500)]


def test_bytes_that_are_no_utf8_are_read_without_harm() -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(128, 256, 10_000).astype(np.uint8)
    data.flags.writeable = False
    stop, terms = Terms(native, 1), Terms(native, 1 << 14, 1 << 18)
    indptr, *_ = native.count_terms(
        data, np.array([0, 5000, 10_000]), character_chart(True), True, 2, 3, False, 1 << 62, stop.slots,
        stop.hashes[:0], True, 0, terms.slots, terms.hashes, terms.place, terms.df, terms.tf, terms.ends, terms.letters,
    )  # fmt: skip
    assert len(indptr) == 3


def test_one_letter_more_or_less_makes_another_hash() -> None:
    terms = Terms(native, 1 << 16, 1 << 20)
    terms.count(
        [" ".join(f"{a}{b}{c}" for a in "abcdefghijklmnopqrst" for b in "äöüßéèçñøå" for c in "0123456789_xyz")]
    )
    assert terms.n_terms == len(set(terms.hashes[: terms.n_terms].tolist())) == 20 * 10 * 14


@few
@given(st.lists(st.text(st.one_of(st.sampled_from("İΣıσĳ\u0130\u03a3"), letters), max_size=8), max_size=4))
def test_letters_that_only_python_lowers_are_found(texts: list[str]) -> None:
    data, _ = as_bytes(texts)
    assert (
        native.needs_python(data) == reference.needs_python(data) == sum(letter in CONTEXT for letter in "".join(texts))
    )


@few
@given(st.lists(st.integers(0, 30), max_size=40), st.lists(st.integers(0, 30), max_size=40))
def test_terms_are_found_or_added(first: list[int], then: list[int]) -> None:
    spread = 1 << 61  # the low bits collide, so that chains of slots are walked
    results = []
    for kernels in (native, reference):
        slots, hashes = np.full(128, -1, np.int32), np.zeros(64, np.uint64)
        n_terms, ids = 0, []
        for new in (first, then):
            own = np.empty(len(new), np.int32)
            n_terms = kernels.add_terms(np.array(new, np.uint64) * np.uint64(spread), n_terms, slots, hashes, own)
            ids += own.tolist()
        results.append((n_terms, ids, slots.tolist(), hashes.tolist()))
        assert n_terms == len({number % 8 for number in first + then})
    assert results[0] == results[1]


@pytest.mark.parametrize("n_terms", [31, 32, 33, 500])
def test_long_rows_come_in_order_too(n_terms: int) -> None:
    rng = np.random.default_rng(0)
    ids, counts = rng.permutation(n_terms).astype(np.int32), rng.integers(1, 9, n_terms).astype(np.int32)
    given_ = (np.array([0, n_terms]), ids, counts, 1, np.empty(0, np.int32), np.zeros(1, np.int64),
              rng.uniform(1, 9, n_terms).astype(np.float32), np.ones(1), np.ones(1, np.bool_))  # fmt: skip
    one, other = native.weigh(*given_), reference.weigh(*given_)
    agree(one[:2], other[:2])
    np.testing.assert_allclose(one[2], other[2], atol=1e-6)


@few
@given(st.data())
def test_native_and_reference_weigh_alike(data: st.DataObject) -> None:
    n_blocks, n_texts, n_terms = data.draw(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 8)))
    rows = data.draw(
        st.lists(
            st.dictionaries(st.integers(0, n_terms - 1), st.integers(1, 300), max_size=n_terms),
            min_size=n_blocks * n_texts, max_size=n_blocks * n_texts,
        )
    )  # fmt: skip
    indptr = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    ids = np.array([term for row in rows for term in row], np.int32)
    counts = np.array([count for row in rows for count in row.values()], np.int32)
    kept = data.draw(st.lists(st.booleans(), min_size=n_blocks * n_terms, max_size=n_blocks * n_terms))
    order = np.cumsum(kept) - 1
    new_ids = data.draw(st.sampled_from([np.where(kept, order, -1).astype(np.int32), np.empty(0, np.int32)]))
    starts = np.arange(n_blocks, dtype=np.int64) * n_terms
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    idf, weights = rng.uniform(1, 9, n_blocks * n_terms).astype(np.float32), rng.uniform(0.1, 3, n_blocks)
    sublinear = rng.random(n_blocks) < 0.5
    given_ = (indptr, ids, counts, n_blocks, new_ids, starts, idf, weights, sublinear)
    one, other = native.weigh(*given_), reference.weigh(*given_)
    agree(one[:2], other[:2])
    assert one[2].dtype == other[2].dtype == np.float32
    np.testing.assert_allclose(one[2], other[2], atol=1e-6)


def test_the_reference_makes_terms_as_scikit_learn_does() -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    text = "Ein  Kätzchen\u3000saß, a b (x) auf_2 dem 3.14 Dach!"
    for low, high in ((1, 1), (1, 3), (2, 2), (3, 9), (12, 14)):
        words = CountVectorizer(ngram_range=(low, high)).build_analyzer()(text)
        own = reference.word_terms(reference.words_of(text.lower(), False, 99), low, high)
        assert sorted(term for term, _ in own) == sorted(words)
        grams = CountVectorizer(analyzer="char_wb", ngram_range=(low, high)).build_analyzer()(text)
        assert sorted(term for term, _ in reference.letter_terms(text.lower().split(), low, high)) == sorted(grams)


def test_numbers_are_one_word_and_long_texts_are_cut() -> None:
    words = reference.words_of("in 1999 7 of 3,000 men x v2 ٣٤", True, 99)
    assert words == ["in", "0", "0", "of", "0", "0", "men", "v2", "0"]
    assert reference.words_of("in 1999 x of men", False, 3) == ["in", "1999", "of"]


def test_hashes_are_those_of_saved_models() -> None:
    terms = Terms(native)
    terms.count(["größe größe_x"], high=2)
    assert terms.names() == ["größe", "größe größe_x", "größe_x"]
    assert terms.hashes[:3].tolist() == [0xAF74EB8CC04684EB, 0xB9D60822B6E4F714, 0x93CE79C0D809F8DA]
