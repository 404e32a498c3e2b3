import logging
import warnings

import numpy as np
import pandas as pd
import pytest

from longtail import Linear
from longtail.data import Dataset, Split, load_dataset
from longtail.data.doctor import examine
from longtail.data.matching import match
from longtail.data.vocabulary import Vocabulary
from longtail.evaluation import truth_for
from longtail.run.log import LOG

TOPICS = Vocabulary.of(
    ["t1", "t2", "t3", "t4", "t5"],
    {"t1": "Gardening", "t2": "Roses", "t3": "Mercury", "t4": "Mercury", "t5": "Polish"},
    {"t1": ["horticulture", "roses"], "t2": ["Rosa"], "t3": ["quicksilver"], "t4": ["planet"], "t5": ["planet"]},
)
ROWS = [["ROSES", "t1"], ["horticulture"], ["gardening", "t1"], ["soup"]]
TEXTS = ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    ("label", "id"),
    [
        ("t1", "t1"),  # an id
        ("Gardening", "t1"),  # a name
        ("gardening", "t1"),
        (" GARDENING\t", "t1"),
        ("roses", "t2"),  # a preferred name in other letters wins over an alternative one
        ("rosa", "t2"),
        ("quicksilver", "t3"),
        ("Mercury", None),  # of two concepts
        ("planet", None),
        ("soup", None),
    ],
)
def test_a_label_is_an_id_or_else_a_preferred_name_or_else_an_alternative_one(label: str, id: str | None) -> None:
    found = match([label], TOPICS)
    assert (None if found.unknown else found.id_of(label)) == id
    assert list(found.ambiguous) == ([label] if label in ("Mercury", "planet") else [])


def test_names_that_differ_in_case_only_are_told_apart_where_they_are_written_so() -> None:
    found = match(["Polish", "polish", "POLISH"], Vocabulary.of(["a", "b"], {"a": "Polish", "b": "polish"}))
    assert found.by_name == {"Polish": "a", "polish": "b"}
    assert found.ambiguous == {"POLISH": ["a", "b"]}


def write_rows(tmp_path):
    lines = [f'{{"text": "{text}", "labels": {row}}}'.replace("'", '"') for text, row in zip(TEXTS, ROWS, strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    return tmp_path / "train.jsonl"


@pytest.mark.parametrize("source", ["file", "folder", "lists", "of", "fit", "frame"])
def test_labels_given_as_names_become_ids_wherever_data_meet_a_vocabulary(tmp_path, source: str) -> None:
    if source == "folder":
        (tmp_path / "vocabulary.txt").write_text("t1\tGardening\thorticulture\nt2\tRoses\n")
    if source in ("file", "folder"):
        path = write_rows(tmp_path)
        data = load_dataset(path, vocabulary=TOPICS) if source == "file" else load_dataset(tmp_path)
        split = data.train
    elif source == "lists":
        split = load_dataset({"train": (TEXTS, ROWS)}, vocabulary=TOPICS).train
    elif source == "of":
        split = Split.of(TEXTS, ROWS, TOPICS)
    elif source == "fit":
        split = Split.of(TEXTS, ROWS).named_by(TOPICS)
    else:
        columns = sorted({label for row in ROWS for label in row})
        frame = pd.DataFrame([[int(name in row) for name in columns] for row in ROWS], columns=columns)
        split = Split.of(TEXTS, frame, TOPICS)
    assert [record["labels"] for record in split] == [["t1", "t2"], ["t1"], ["t1"], ["soup"]]
    assert split.label_names(0) == ["Gardening", "Roses"]


def test_a_model_of_names_and_a_vocabulary_has_ids_and_is_evaluated_on_names() -> None:
    split = Split.of(TEXTS, ROWS)
    model = Linear().fit(split, vocabulary=TOPICS)
    assert set(model.vocabulary_.ids) == {"soup", *TOPICS.ids}
    truth, vocabulary = truth_for(model.vocabulary_, split)
    assert vocabulary.ids == model.vocabulary_.ids
    assert [[vocabulary.ids[label] for label in truth[row]] for row in range(2)] == [["t1", "t2"], ["t1"]]


def test_labels_that_are_not_in_the_vocabulary_are_told(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_rows(tmp_path)
    with caplog.at_level(logging.INFO, "longtail"):
        data = load_dataset(path, vocabulary=TOPICS)
    assert [record.getMessage() for record in caplog.records] == [
        "3 of 5 labels are names in the vocabulary: 'ROSES' is t2, 'gardening' is t1, 'horticulture' is t1",
        "1 of 5 labels (20.0 %) are not in the vocabulary (its ids are like 't1'), e.g. 'soup'",
        "3 of 5 concepts of the vocabulary have no text, e.g. Mercury, Mercury, Polish",
        "1 of 4 names of the vocabulary belong to more than one concept, e.g. 'Mercury' (t3, t4)",
    ]
    kinds = {finding.kind: finding.examples for finding in examine(data).warnings}
    assert kinds["labels not in the vocabulary"] == ("'soup'",)
    assert kinds["concepts without texts"] == ("Mercury", "Mercury", "Polish")
    assert kinds["names of several concepts"] == ("'Mercury' (t3, t4)",)


def test_a_label_that_several_concepts_are_called_is_told_with_their_ids() -> None:
    data = Dataset.of({"train": (["x", "y"], [["Mercury"], ["t1"]])}).named_by(TOPICS)
    told = {finding.kind: finding for finding in examine(data).warnings}
    assert told["ambiguous labels"].examples == ("'Mercury' (t3, t4)",)
    assert told["labels not in the vocabulary"].count == 1


def test_labels_in_order_stay_in_order_where_no_name_is_matched() -> None:
    split = Split.of(["x"], np.array([[0, 1]]), Vocabulary.of(["t2", "t1"])).named_by(TOPICS)
    assert split.vocabulary.ids == ["t2", "t1"]
    assert split.labels[0].tolist() == [1]


def test_python_programs_that_do_not_listen_get_warnings() -> None:
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []  # those of pytest
    try:
        with pytest.warns(UserWarning, match=r"1 of 2 labels \(50\.0 %\) are not in the vocabulary"):
            Split.of(["x"], [["t1", "soup"]], TOPICS)
        listener = logging.NullHandler()
        LOG.addHandler(listener)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Split.of(["x"], [["t1", "soup"]], TOPICS)
        LOG.removeHandler(listener)
    finally:
        root.handlers = handlers
