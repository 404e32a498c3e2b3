from __future__ import annotations

from longtail.data.dataset import Split
from longtail.data.join import joined
from longtail.data.vocabulary import Vocabulary


def test_texts_of_both_are_there_once_with_the_labels_of_the_first() -> None:
    first = Split.of(["a", "b"], [["x"], ["z"]])
    further = Split.of(["b", "c", "c"], [["y"], ["y"], ["x"]])
    both = joined(first, further)
    assert [(record["text"], record["labels"]) for record in both] == [
        ("a", ["x"]),
        ("b", ["z"]),
        ("c", ["y"]),
        ("c", ["x"]),
    ]
    assert both.vocabulary.ids == ["x", "y", "z"]


def test_texts_are_the_same_if_all_columns_of_both_are() -> None:
    first = Split.of({"text": ["", ""], "title": ["a", "b"], "id": ["1", "2"]}, [["x"], ["x"]])
    further = Split.of({"text": ["", ""], "title": ["a", "c"], "id": ["7", "8"], "more": ["m", "n"]}, [["y"], ["y"]])
    both = joined(first, further)
    assert both.texts["title"].to_pylist() == ["a", "b", "c"]
    assert both.texts["more"].to_pylist() == ["", "", "n"]


def test_names_come_from_either_side_and_an_official_vocabulary_stays() -> None:
    official = Vocabulary.of(["x", "y"], {"x": "Ex", "y": "Why"})
    further = Split.of(["b"], [["y"]]).named_by(official)
    both = joined(Split.of(["a"], [["x"]], Vocabulary.of(["x"], {"x": "Apple"})), further)
    assert both.vocabulary.names == ["Apple", "Why"]
    assert both.official is official
