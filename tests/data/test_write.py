import random

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import load_dataset, write_dataset, write_split
from longtail.data.dataset import Dataset, Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError, LongtailError


def small():
    data = Dataset.of({"train": (["one"], [["b"]]), "test": (["two"], [["a"]])})
    official = Vocabulary.of(["b", "z"], {"b": "Bee", "p": "Parent"}, {"b": ["wasp"]}, {"b": ["p"], "z": ["b"]})
    return data.named_by(official)


def test_a_folder_holds_all_that_is_known_of_the_labels(tmp_path):
    data = small()
    write_dataset(data, tmp_path / "new" / "folder")
    again = load_dataset(tmp_path / "new" / "folder")
    assert sorted(file.name for file in (tmp_path / "new" / "folder").iterdir()) == [
        "hierarchy.tsv", "labels.txt", "test.jsonl.zst", "train.jsonl.zst", "vocabulary.txt",
    ]  # fmt: skip
    assert again.vocabulary.table.to_pydict() == data.vocabulary.table.to_pydict()
    assert again.vocabulary.parent_names == data.vocabulary.parent_names
    assert again.official.table.to_pydict() == data.official.table.to_pydict()
    assert again.test.fingerprint == data.test.fingerprint


def test_a_label_without_texts_survives(tmp_path):
    data = Dataset.of({"train": (["one"], [["b"]])}, vocabulary=Vocabulary.of(["a", "b", "c"]))
    write_dataset(data, tmp_path / "folder")
    assert load_dataset(tmp_path / "folder").vocabulary.ids == ["a", "b", "c"]


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine").mkdir()
    write_dataset(small(), tmp_path / "mine")
    with pytest.raises(DataError, match="mine exists; choose a new or an empty folder"):
        write_dataset(small(), tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_data_set_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    data = Dataset.of({"train": (["one"], [["tab\there"]])})
    with pytest.raises(DataError, match="must not hold tabs"):
        write_dataset(data, tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_stays_when_writing_fails(tmp_path):
    (tmp_path / "a.csv").write_text("precious")
    with pytest.raises(DataError, match="separator"):
        write_split(Split.of(["x"], [["a;b"]]), tmp_path / "a.csv")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.csv", "precious")]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LongtailError, match=r"cannot write .*file"):
        write_split(small().train, tmp_path / "file" / "a.jsonl")
    with pytest.raises(LongtailError, match=r"cannot write .*file"):
        write_dataset(small(), tmp_path / "file" / "folder")


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path):
    resource = pytest.importorskip("resource")
    draw = random.Random(0)
    data = Dataset.of({"train": ([str(draw.random()) for _ in range(5000)], [["a"]] * 5000)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(LongtailError, match=r"cannot write .*folder"):
            write_dataset(data, tmp_path / "folder")
        with pytest.raises(LongtailError, match=r"cannot write .*a\.csv"):
            write_split(data.train, tmp_path / "a.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must end in \.jsonl.*got a\.xlsx"):
        write_split(small().train, tmp_path / "a.xlsx")


def test_features_alone_cannot_be_written_as_texts(tmp_path):
    split = Split.of([""], [["a"]])
    split = Split(split.texts, split.labels, split.vocabulary, sp.csr_matrix(np.ones((1, 1))))
    with pytest.raises(DataError, match="split 'train' has only features"):
        write_dataset(Dataset("x", {"train": split}, split.vocabulary), tmp_path / "folder")


def test_many_texts_are_written_in_their_order(tmp_path):
    n = 25_000
    split = Split.of([f"text {i}" for i in range(n)], [[f"label{i % 7}"] for i in range(n)])
    write_split(split, tmp_path / "a.jsonl.zst")
    assert load_dataset(tmp_path / "a.jsonl.zst").train.fingerprint == split.fingerprint
