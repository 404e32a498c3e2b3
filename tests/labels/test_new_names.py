"""How likely a label is whose name a text has, learned from other labels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from longtail.data.vocabulary import Vocabulary
from longtail.labels.name_matches import NameOptions, NameTable
from longtail.labels.new_names import FACTS, learn_name_odds, name_facts
from longtail.types import LabelMatrix

READER = NameOptions(title=None, title_words=2)
WORDS = ["apple", "stone", "river", "cloud", "tiger", "paper", "glass", "wheel", "honey", "brick"]


def data(n_texts: int = 400) -> tuple[Vocabulary, LabelMatrix, pa.Table]:
    """Texts of six words; a label is right where its name is one of the first two words."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(len(WORDS))[:6] for _ in range(n_texts)]
    names = dict(zip("0123456789", WORDS, strict=True))
    texts = pa.table({"text": [" ".join(WORDS[number] for number in row) for row in rows]})
    return Vocabulary.of(list(names), names), LabelMatrix.from_lists([sorted(row[:2]) for row in rows], 10), texts


def test_a_name_at_the_beginning_says_more_also_of_a_name_that_was_never_seen() -> None:
    vocabulary, labels, texts = data()
    learned = learn_name_odds(vocabulary, labels, labels.texts_per_label(), texts, READER)
    assert learned is not None
    odds, of_texts = learned
    assert len(odds.weights) == len(FACTS) + 1
    assert of_texts.shape == (400, 10)
    new = NameTable.of(Vocabulary.of(["x"], {"x": "maple"}), READER)
    first, last = odds.of_matches(new.match(pa.table({"text": ["maple b c d e f", "a b c d e maple"]})), new)
    assert first > 1
    assert last < -1


def test_facts_do_not_depend_on_other_names() -> None:
    vocabulary, _, texts = data(20)
    whole, alone = NameTable.of(vocabulary, READER), NameTable.of(vocabulary.take(np.array([3])), READER)
    matches = whole.match(texts)
    kept = name_facts(matches, whole)[matches.labels == 3]
    assert kept.tolist() == name_facts(alone.match(texts), alone).tolist()


def test_nothing_is_learned_from_names_that_are_numbers_or_in_no_text() -> None:
    _, labels, texts = data(100)
    frequency = labels.texts_per_label()
    numbers = Vocabulary.of([str(number) for number in range(10)])
    assert learn_name_odds(numbers, labels, frequency, texts, READER) is None
    elsewhere = Vocabulary.of(list("0123456789"), {str(number): f"other{number}" for number in range(10)})
    assert learn_name_odds(elsewhere, labels, frequency, texts, READER) is None
