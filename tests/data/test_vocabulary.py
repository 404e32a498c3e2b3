import numpy as np
import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError

ANIMALS = Vocabulary.of(
    ["dog", "cat"],
    names={"dog": "Dog", "cat": "", "animal": "Animal"},
    alternatives={"dog": ["hound", "cur"]},
    parents={"dog": ["animal", "cat"], "cat": ["thing"]},
)


def test_a_label_without_a_name_is_called_by_its_id():
    assert ANIMALS.names == ["Dog", "cat"]
    assert Vocabulary.of(["x"]).names == ["x"]


def test_a_label_is_found_by_id_and_described_by_number():
    assert ANIMALS.position == {"dog": 0, "cat": 1}
    assert ANIMALS.alternatives(0) == ["hound", "cur"]
    assert ANIMALS.alternatives(1) == []
    assert ANIMALS.parents(0) == ["animal", "cat"]


def test_parents_need_not_be_labels_and_have_names_all_the_same():
    assert ANIMALS.name_of("animal") == "Animal"
    assert ANIMALS.name_of("thing") == "thing"
    assert ANIMALS.name_of("dog") == "Dog"
    assert ANIMALS.name_of("nobody") == "nobody"
    assert set(ANIMALS.parent_names) == {"animal", "thing"}


def test_an_id_given_twice_is_refused():
    with pytest.raises(DataError, match="got 'b' twice"):
        Vocabulary.of(["a", "b", "c", "b"])


def test_taken_labels_keep_what_is_known_of_them_and_of_their_parents():
    taken = ANIMALS.take(np.array([0]))
    assert taken.ids == ["dog"]
    assert taken.alternatives(0) == ["hound", "cur"]
    assert taken.parent_names == {"animal": "Animal", "cat": "cat"}


def test_new_labels_come_behind_the_known_ones():
    more = ANIMALS.extended(["cow", "dog", "cow", "ape"])
    assert more.ids == ["dog", "cat", "cow", "ape"]
    assert more.names == ["Dog", "cat", "cow", "ape"]
    assert more.parents(0) == ["animal", "cat"]
    assert ANIMALS.extended(["cat"]) is ANIMALS


def test_a_label_is_described_by_the_first_vocabulary_that_knows_it():
    first = Vocabulary.of(["a"], {"a": "First"})
    second = Vocabulary.of(["a", "b"], {"a": "Second", "b": "Bee"}, {"a": ["alias"]}, {"b": ["p"]})
    described = Vocabulary.of(["b", "a", "c"]).described_by(first, second)
    assert described.ids == ["b", "a", "c"]
    assert described.names == ["Bee", "First", "c"]
    assert described.alternatives(1) == ["alias"]
    assert described.parents(0) == ["p"]


def test_parents_get_the_names_that_any_vocabulary_gives_them():
    hierarchy = Vocabulary.of(["a"], {"p": "from the hierarchy"}, parents={"a": ["p", "q"]})
    official = Vocabulary.of(["q"], {"q": "Queue"})
    described = Vocabulary.of(["a"]).described_by(official, hierarchy)
    assert described.parent_names == {"p": "from the hierarchy", "q": "Queue"}


def test_an_empty_vocabulary_is_one():
    nothing = Vocabulary.of([])
    assert len(nothing) == 0
    assert nothing.extended(["a"]).ids == ["a"]


def test_a_path_leads_from_the_top_down_to_a_label_and_ends_at_cycles() -> None:
    parents = {"rose": ["flower", "gift"], "flower": ["plant"], "plant": ["life"], "egg": ["hen"], "hen": ["egg"]}
    vocabulary = Vocabulary.of(
        ["rose", "flower", "plant", "egg", "hen"], {"flower": "Flower", "life": "Life"}, None, parents
    )
    assert vocabulary.path(0) == ["Life", "plant", "Flower"]
    assert vocabulary.path(2) == ["Life"]
    assert vocabulary.path(3) == ["egg", "hen"]
    assert Vocabulary.of(["a"]).path(0) == []
