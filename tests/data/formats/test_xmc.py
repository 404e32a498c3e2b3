import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from longtail.data import load_dataset
from longtail.data.dataset import Split
from longtail.data.formats.xmc import write
from longtail.errors import DataError


def put(path, text):
    path.write_text(text)
    return path


def test_the_first_line_counts_and_the_others_hold_labels_and_features(tmp_path):
    put(tmp_path / "set_train.txt", "4 5 9\n12,7 0:0.5 3:-1e-2\n 4:1\n7\n4:2 0:1 4:1\n")
    put(tmp_path / "set_test.txt", "1 5 9\n8 1:1\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "xmc"
    assert data.vocabulary.ids == ["12", "7", "8"]
    wanted = [[0.5, 0, 0, -0.01, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 3]]
    assert data.train.features.toarray() == pytest.approx(np.array(wanted))
    assert data.train.features.dtype == np.float32
    assert [data.train.labels[i].tolist() for i in range(4)] == [[0, 1], [], [1], []]
    assert data.test.features.shape == (1, 5)
    assert not data.train.has_texts
    assert data.train.texts["text"].to_pylist() == [""] * 4


def test_without_a_first_line_the_widest_split_tells_the_number_of_features(tmp_path):
    put(tmp_path / "train.svm", "1 0:1\n\n2,1\t2:3 \n")
    put(tmp_path / "test.svm", "1 6:1\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "svmlight"
    assert data.train.features.shape == (3, 7)
    assert data.train.features.nnz == 2
    assert data.train.labels.labels_per_text().tolist() == [1, 0, 2]


def test_names_of_numbered_labels_are_found(tmp_path):
    put(tmp_path / "train.txt", "1 2 3\n1 0:1\n")
    put(tmp_path / "Yf.txt", "zero\none\ntwo\n")
    data = load_dataset(tmp_path)
    assert data.vocabulary.names == ["zero", "one", "two"]
    assert data.train.label_names(0) == ["one"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 5 9\n1 0:1\n", "must hold 2 texts as its first line says, got 1"),
        ("1 5 9\n1 0:1 x\n", r"a\.txt:2: a line must be labels and feature:value pairs"),
        ("2 5 9\n1 0:1\n1 0:1:2\n", r"a\.txt:3: a line must be"),
        ("1 5 9\n1 0:\n", r"a\.txt:2: a line must be"),
        ("1 5 9\n1 -1:3\n", r"a\.txt:2: a line must be"),
        ("1 5 9\n1 0:nan\n", r"a\.txt:2: a line must be"),
        ("1 5 9\n1 5:1\n", r"a\.txt:2: a feature must be at most 4, got 5"),
        ("2 5 9\n1 0:1\n1 0:1e99\n", r"a\.txt:3: a value must be a finite number, got 1e99"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load_dataset(put(tmp_path / "a.txt", text))


def test_a_missing_first_line_is_told(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:1: the first line must hold the numbers .* `format=svmlight`"):
        load_dataset(put(tmp_path / "a.txt", "1 0:1\n"), format="xmc")


MATRIX = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.dictionaries(st.integers(0, 9), st.floats(-9, 9, width=32), max_size=4), min_size=n, max_size=n),
        st.lists(st.sets(st.integers(0, 4), max_size=3), min_size=n, max_size=n),
    )
)


@given(MATRIX, st.booleans())
def test_features_survive_writing_and_reading(tmp_path_factory, case, header):
    rows, labels = case
    features = sp.lil_matrix((len(rows), 10), dtype=np.float32)
    for i, row in enumerate(rows):
        for feature, value in row.items():
            features[i, feature] = value
    plain = Split.of([""] * len(rows), [[str(label) for label in group] for group in labels])
    split = Split(plain.texts, plain.labels, plain.vocabulary, sp.csr_matrix(features))
    path = tmp_path_factory.mktemp("round") / "a.txt"
    write(split, path, header)
    again = load_dataset(path, format="xmc" if header else "svmlight").train
    width = again.features.shape[1]
    assert (again.features.toarray() == features.toarray()[:, :width]).all()
    assert not features.toarray()[:, width:].any()
    assert [again.vocabulary.ids[x] for x in again.labels.indices] == [str(x) for x in split.labels.indices]
    assert again.labels.indptr.tolist() == split.labels.indptr.tolist()


def test_what_scikit_learn_writes_is_read_as_scikit_learn_reads_it(tmp_path):
    rng = np.random.default_rng(0)
    features = sp.random(30, 20, 0.2, "csr", np.float32, random_state=0)
    labels = sp.csr_matrix(rng.random((30, 5)) < 0.3)
    dump_svmlight_file(features, labels, str(tmp_path / "a.svm"), multilabel=True)
    theirs, _ = load_svmlight_file(str(tmp_path / "a.svm"), n_features=20, multilabel=True, dtype=np.float32)
    ours = load_dataset(tmp_path / "a.svm").train
    assert ours.features.toarray() == pytest.approx(theirs.toarray()[:, : ours.features.shape[1]])
    assert [[ours.vocabulary.ids[x] for x in ours.labels[i]] for i in range(30)] == [
        [str(x) for x in labels[i].indices] for i in range(30)
    ]


LONG = "1" * 100_000


@pytest.mark.parametrize(
    "line",
    [
        f"1 0:{LONG}",
        f"1 0:-1e{LONG}",
        f"1 {LONG}:1",
        f"{LONG}:{LONG} x",
        f"1 0:{LONG}x",
        f"1 0:{'-' * 100_000}",
        f"1{' 0:1' * 25_000} x",
        f"1{' ' * 100_000}x",
        f"{LONG} 9 9",
    ],
)
@pytest.mark.parametrize("format", ["svmlight", "xmc"])
def test_a_line_of_very_many_characters_is_refused_after_one_look(tmp_path, line, format):
    (tmp_path / "a.txt").write_text(f"{line}\n2 0:1\n")
    with pytest.raises(DataError, match=r"a\.txt:1: .{30,200}$"):
        load_dataset(tmp_path / "a.txt", format=format)


def test_a_feature_number_that_would_fill_the_memory_is_refused(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:1\n2 134217728:1\n")
    with pytest.raises(DataError, match=r"a\.svm:2: a feature must be at most 134,217,727, got 134217728; renumber"):
        load_dataset(tmp_path / "a.svm")
    (tmp_path / "a.txt").write_text("1 2000000000 3\n2 1999999999:1\n")
    with pytest.raises(DataError, match=r"a\.txt:2: a feature must be at most 134,217,727, got 1999999999; renumber"):
        load_dataset(tmp_path / "a.txt")


def test_a_split_without_features_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="only a split with features"):
        write(Split.of(["x"], [["a"]]), tmp_path / "a.txt")
