import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import load_dataset
from longtail.errors import DataError

Y = sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0]], np.float32))
X = sp.csr_matrix(np.array([[1, 0], [0, 2]], np.float32))


def test_texts_labels_features_and_names_are_put_together(tmp_path):
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    sp.save_npz(tmp_path / "X.trn.npz", X)
    (tmp_path / "X.trn.txt").write_text("one\ntwo\n")
    sp.save_npz(tmp_path / "Y.tst.npz", Y[:1])
    (tmp_path / "X.tst.txt").write_text("three\n")
    (tmp_path / "output-items.txt").write_text("Zero\nOne\nTwo\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "pecos"
    assert data.train.texts["text"].to_pylist() == ["one", "two"]
    assert data.train.features.toarray().tolist() == [[1, 0], [0, 2]]
    assert data.train.has_texts
    assert data.vocabulary.names == ["Zero", "One", "Two"]
    assert [data.train.labels[i].tolist() for i in range(2)] == [[1, 2], []]
    assert data.test.features is None


def test_features_alone_are_enough(tmp_path):
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    sp.save_npz(tmp_path / "X.trn.npz", X)
    data = load_dataset(tmp_path)
    assert not data.train.has_texts
    assert data.vocabulary.ids == ["1", "2"], "a column that nobody names and no text has is no label"


def test_explicit_zeros_are_no_labels(tmp_path):
    stored = Y.copy()
    stored.data[0] = 0
    sp.save_npz(tmp_path / "Y.trn.npz", stored)
    (tmp_path / "X.trn.txt").write_text("one\ntwo\n")
    assert load_dataset(tmp_path).train.labels.labels_per_text().tolist() == [1, 0]


@pytest.mark.parametrize("text", ["one\n", "one\ntwo\nthree\n"])
def test_files_of_different_length_are_refused(tmp_path, text):
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    (tmp_path / "X.trn.txt").write_text(text)
    message = r"X\.trn\.txt and Y\.trn\.npz must have the same number of texts, got (1|3) and 2"
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path)


def test_matrices_of_different_length_are_refused(tmp_path):
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    sp.save_npz(tmp_path / "X.trn.npz", X[:1])
    with pytest.raises(DataError, match=r"X\.trn\.npz and Y\.trn\.npz must have the same number of texts"):
        load_dataset(tmp_path)


def test_labels_without_anything_to_read_are_refused(tmp_path):
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    with pytest.raises(DataError, match=r"must have X\.trn\.txt or X\.trn\.npz beside it"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("content", [b"nonsense", b""])
def test_a_damaged_matrix_is_named(tmp_path, content):
    (tmp_path / "Y.trn.npz").write_bytes(content)
    (tmp_path / "X.trn.txt").write_text("one\n")
    with pytest.raises(DataError, match=r"Y\.trn\.npz must be a sparse matrix"):
        load_dataset(tmp_path)


def test_a_matrix_that_needs_pickle_is_refused(tmp_path):
    np.savez(tmp_path / "Y.trn.npz", format=np.array([{"a": 1}], dtype=object))
    (tmp_path / "X.trn.txt").write_text("one\n")
    with pytest.raises(DataError, match=r"Y\.trn\.npz must be a sparse matrix"):
        load_dataset(tmp_path)
