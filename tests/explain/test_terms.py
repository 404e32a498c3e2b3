"""Which words the TF-IDF features of a text are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.dataset import Split
from longtail.errors import DataError
from longtail.explain.terms import term_shares
from longtail.explain.words import TextWords
from longtail.sparse import sp
from longtail.text.features import TextFeatures
from longtail.text.fields import FieldOptions, TfidfOptions

BLOCKS = (
    FieldOptions(words=(1, 2), min_df=1, stop_words="english"),
    FieldOptions(column="title", otherwise="text", otherwise_words=4, words=(1, 3), min_df=1, numbers=True),
    FieldOptions(chars=(1, 5), min_df=1, max_words=6),
    FieldOptions(words=(1, 1), min_df=1, lowercase=False),
)
PIECES = [
    "word",
    "Word",
    "e-mail",
    "the",
    "of",
    "12",
    "7",
    "İstanbul",
    "ΣΑΣ",
    "straße",
    "--",
    "…!",
    "x",
    "a_b",
    "naïve",
]
texts = st.lists(st.sampled_from([*PIECES, " ", "  ", "\n", ",", ". "]), min_size=1, max_size=25).map(" ".join)


def fitted(fields: dict[str, str], *blocks: FieldOptions) -> tuple[TextFeatures, Any]:
    table = pa.table({name: [text, "word other"] for name, text in fields.items()})
    split = Split.of(table, [["a"], ["b"]])
    features, _ = TextFeatures.fit(split, TfidfOptions(blocks=blocks))
    return features, features.rows(table.slice(0, 1), None)


@given(texts, st.none() | texts, st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_every_feature_of_a_text_belongs_to_words_of_it(
    text: str, title: str | None, blocks: list[FieldOptions]
) -> None:
    fields = {"text": text} if title is None else {"title": title, "text": text}
    try:
        features, row = fitted(fields, *blocks)
    except DataError:  # a block without any term
        return
    words = TextWords.of(fields)
    shares = term_shares(words, features, row.indices)
    totals = np.bincount(shares.features, shares.shares, len(row.indices))
    assert totals == pytest.approx(np.ones(len(row.indices)))
    contributions = np.arange(len(row.indices)) - 2.0
    assert shares.of_words(contributions).sum() == pytest.approx(contributions.sum())


def test_a_feature_belongs_to_the_words_that_it_is_made_of() -> None:
    fields = {"text": "red apples, red pears"}
    features, row = fitted(fields, FieldOptions(words=(1, 2), min_df=1))
    words = TextWords.of(fields)
    assert words.forms == ("red", "apples", "pears")
    shares = term_shares(words, features, row.indices)
    names = features.tfidf.feature_names(row.indices)  # type: ignore[union-attr]
    of_term = {
        names[feature]: {words.forms[word]: share for word, share in zip(*pair, strict=True)}
        for feature in range(len(names))
        for pair in [(shares.words[shares.features == feature], shares.shares[shares.features == feature])]
    }
    assert of_term["red"] == {"red": 1.0}
    assert of_term["red apples"] == {"red": 0.5, "apples": 0.5}
    assert of_term["apples red"] == {"red": 0.5, "apples": 0.5}


def test_letters_beside_a_word_belong_to_it() -> None:
    fields = {"text": "(apple)"}
    features, row = fitted(fields, FieldOptions(chars=(2, 2), min_df=1))
    shares = term_shares(TextWords.of(fields), features, row.indices)
    assert set(shares.words.tolist()) == {0}
    assert len(row.indices) == len("(apple)") + 1


def test_features_that_came_without_texts_cannot_be_explained() -> None:
    matrix = sp.csr_matrix(np.eye(2, dtype=np.float32))
    split = Split.of(["", ""], [["a"], ["b"]])
    features, row = TextFeatures.fit(Split(split.texts, split.labels, split.vocabulary, matrix), TfidfOptions())
    with pytest.raises(DataError, match="trained on sparse features"):
        term_shares(TextWords.of({"text": "a"}), features, row.part(0, 1).indices)
