"""What is told about data before training is what is in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from longtail.choice.facts import DataFacts, MachineFacts
from longtail.data.dataset import Dataset, Split
from longtail.data.vocabulary import Vocabulary

NAMES = Vocabulary.of(["1", "2", "3"], {"1": "apple", "2": "Bank (Möbel)", "3": "house"}, {"3": ["building"]})


def test_counts_and_words_are_those_of_the_texts() -> None:
    split = Split.of(["the red apple is on the tree", "a house"], [["1", "3"], ["3"]], NAMES)
    facts = DataFacts.about(split)
    assert (facts.n_texts, facts.n_labels, facts.n_labels_without_texts) == (2, 2, 1)
    assert facts.labels_per_text == 1.5
    assert facts.words_per_text == 4.5
    assert facts.has_names
    assert not facts.has_hierarchy


def test_names_count_where_they_occur_in_any_form_without_their_qualifiers() -> None:
    split = Split.of(["apples for all", "Die Bänke", "a building", "a cave"], [["1"], ["2"], ["3"], ["3"]], NAMES)
    assert DataFacts.about(split).named_in_texts == 0.75


def test_languages_are_told_by_function_words() -> None:
    english, german, other = "this is of the best", "das ist nicht von uns und wir", "talo punainen tie"

    def languages(*texts: str) -> tuple[str, ...]:
        return DataFacts.about(Split.of(list(texts), [["1"]] * len(texts), NAMES)).languages

    assert languages(english, english) == ("en",)
    assert languages(english, german, german) == ("de", "en")
    assert languages(*[english] * 20, german) == ("en",)
    assert languages(other, other, other, other, english) == ("other",)
    assert languages("", "") == ("other",)


def test_numbers_are_no_names_and_parents_are_a_hierarchy(tiny: Callable[..., Dataset]) -> None:
    numbers = Vocabulary.of(["a", "b"], {"a": "17"}, parents={"a": ["b"]})
    facts = DataFacts.about(Split.of(["x", "y"], [["a"], ["b"]], numbers))
    assert not facts.has_names
    assert facts.has_hierarchy


def test_features_without_texts_have_no_words() -> None:
    features = sp.csr_matrix(np.eye(2, dtype=np.float32))
    split = Split.of(["", ""], [["1"], ["3"]], NAMES)
    facts = DataFacts.about(Split(split.texts, split.labels, split.vocabulary, features))
    assert facts.words_per_text == 0
    assert "features without texts" in str(facts)


def test_a_busy_machine_is_told() -> None:
    machine = MachineFacts(n_threads=2, free_memory_bytes=None, load=2.0, has_gpu=False, has_torch=False)
    assert str(machine) == "2 threads, no GPU"
    busy = machine.model_copy(update={"load": 24.0})
    assert str(busy) == "2 threads, no GPU; busy with other work (load 24), so everything is expected to take longer"
