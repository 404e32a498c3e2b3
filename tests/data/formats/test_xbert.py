import pytest

from longtail.data import load_dataset
from longtail.errors import DataError


def test_labels_come_before_the_first_tab(tmp_path):
    (tmp_path / "train.txt").write_text("b,a, b\tone\ttwo\n\n\tno label\n")
    (tmp_path / "test.txt").write_text("c\tthree\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "xbert"
    assert data.train.texts["text"].to_pylist() == ["one\ttwo", "no label"]
    assert data.vocabulary.ids == ["a", "b", "c"]
    assert [data.train.labels[i].tolist() for i in range(2)] == [[0, 1], []]


def test_numbered_labels_get_names_from_a_file(tmp_path):
    (tmp_path / "train.txt").write_text("1\tone\n")
    (tmp_path / "names.txt").write_text("Zero\nOne\n")
    data = load_dataset(tmp_path, label_names=str(tmp_path / "names.txt"))
    assert data.vocabulary.names == ["Zero", "One"]
    assert data.train.label_names(0) == ["One"]


def test_the_label_vocabulary_of_a_release_names_labels_behind_their_counts(tmp_path):
    (tmp_path / "train.txt").write_text("1\tone\n")
    (tmp_path / "valid.txt").write_text("0\ttwo\n")
    (tmp_path / "test.txt").write_text("1,0\tthree\n")
    (tmp_path / "label_vocab.txt").write_text("12\tcommon fisheries policy\n7\t\n3\t1998\n")
    data = load_dataset(tmp_path)
    assert data.vocabulary.ids == ["0", "1", "2"]
    assert data.vocabulary.names == ["common fisheries policy", "1", "1998"]
    assert list(data.splits) == ["train", "dev", "test"]


def test_a_line_without_a_tab_is_named(tmp_path):
    (tmp_path / "train.txt").write_text("a\tone\n\njust text\n")
    with pytest.raises(DataError, match=r"train\.txt:3: a line must be labels, a tab and a text"):
        load_dataset(tmp_path)


def test_labels_may_be_separated_otherwise(tmp_path):
    (tmp_path / "a.txt").write_text("a b\tone\n")
    assert load_dataset(tmp_path / "a.txt", label_separator=" ").vocabulary.ids == ["a", "b"]
