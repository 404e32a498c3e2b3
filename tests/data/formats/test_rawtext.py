import gzip

import pytest

from longtail.data import load_dataset
from longtail.errors import DataError


def test_texts_and_labels_lie_in_two_files(tmp_path):
    (tmp_path / "train_raw_texts.txt").write_text("One\n\nThree /SEP/ x\n")
    (tmp_path / "train_texts.txt").write_text("not these\nnot these\nnot these\n")
    (tmp_path / "train_labels.txt").write_text("b a\n\n c\tb \n")
    (tmp_path / "test_texts.txt.gz").write_bytes(gzip.compress(b"four\n"))
    (tmp_path / "test_labels.txt").write_text("d\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "rawtext"
    assert data.vocabulary.ids == ["a", "b", "c", "d"]
    assert data.train.texts["text"].to_pylist() == ["One", "", "Three /SEP/ x"]
    assert [data.train.labels[i].tolist() for i in range(3)] == [[0, 1], [], [1, 2]]
    assert data.test.texts["text"].to_pylist() == ["four"]


def test_files_of_different_length_are_refused(tmp_path):
    (tmp_path / "train_texts.txt").write_text("one\ntwo\n")
    (tmp_path / "train_labels.txt").write_text("a\n")
    with pytest.raises(DataError, match=r"train_texts\.txt:2: must have as many lines as train_labels\.txt"):
        load_dataset(tmp_path)


def test_missing_labels_are_named(tmp_path):
    (tmp_path / "test_texts.txt").write_text("one\n")
    with pytest.raises(DataError, match=r"must have test_labels\.txt beside test_texts\.txt"):
        load_dataset(tmp_path)
