import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.dataset import Dataset, Split, as_table, take_strings
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError


def test_labels_get_numbers_in_sorted_order_and_repeated_ones_count_once():
    split = Split.of(["x", "y", "z"], [["b", "a", "b"], [], ["a"]])
    assert split.vocabulary.ids == ["a", "b"]
    assert [split.labels[i].tolist() for i in range(3)] == [[0, 1], [], [0]]
    assert split.label_names(0) == ["a", "b"]


def test_a_given_vocabulary_keeps_its_order_and_is_extended_by_new_labels():
    split = Split.of(["x"], [["new", "b"]], Vocabulary.of(["b", "a"]))
    assert split.vocabulary.ids == ["b", "a", "new"]
    assert split.labels[0].tolist() == [0, 2]


def test_texts_and_label_lists_must_be_as_many():
    with pytest.raises(DataError, match="got 2 texts and 1 label lists"):
        Split.of(["x", "y"], [["a"]])


@pytest.mark.parametrize(
    "texts",
    [
        ["one", "two"],
        ("one", "two"),
        np.array(["one", "two"]),
        pa.array(["one", "two"]),
        pa.chunked_array([["one"], ["two"]]),
        pa.table({"text": pa.array(["one", "two"], pa.large_string()), "year": [1, 2]}),
        pa.table({"text": pa.array(["one", "two"]).dictionary_encode()}),
        {"text": ["one", "two"]},
        [{"text": "one"}, {"text": "two"}],
    ],
)
def test_texts_of_any_make_become_a_table_of_strings(texts):
    table = as_table(texts)
    assert table.to_pydict() == {"text": ["one", "two"]}
    assert table.schema.field("text").type == pa.string()


def test_missing_fields_are_empty_and_never_null():
    table = as_table([{"text": "one", "title": None}, {"text": "two", "title": "t"}, {"text": "three"}])
    assert table["title"].to_pylist() == ["", "t", ""]
    assert table["title"].null_count == 0


def test_a_data_frame_gives_its_columns():
    class Frame:
        columns = ("text", "n")

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"text": ["one"], "n": [1]}).__arrow_c_stream__(requested_schema)

    assert as_table(Frame()).to_pydict() == {"text": ["one"]}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "put it into a list"),
        (["one", 2], r"texts\[1\] must be a string, got 2 \(int\)"),
        ([{"text": "one"}, "two"], r"texts\[1\] must be a mapping .* \(str\)"),
        (["one", None], r"texts\[1\] must be a string, got None"),
        ({"title": ["one"]}, "column 'text', got title"),
        ([{}], "got no column"),
        ({"text": ["one"], "title": ["a", "b"]}, "equally long"),
        ({"text": [1]}, "column 'text' must hold texts"),
        (pa.table({"text": [1]}), "must hold texts, got int64"),
        (["half \ud800 a pair"], "column 'text' must hold texts"),
    ],
)
def test_what_holds_no_texts_is_refused(texts, message):
    with pytest.raises(DataError, match=message):
        as_table(texts)


def test_an_empty_list_is_a_table_without_rows():
    assert as_table([]).num_rows == 0
    assert len(Split.of([], [])) == 0


@given(
    st.lists(st.lists(st.text(max_size=5), max_size=5), min_size=1, max_size=5).flatmap(
        lambda chunks: st.tuples(
            st.just(chunks),
            st.lists(st.integers(0, max(sum(map(len, chunks)) - 1, 0)), max_size=0 if not any(chunks) else 12),
        )
    )
)
def test_rows_are_taken_across_chunks_in_the_given_order(case):
    chunks, rows = case
    texts = [text for chunk in chunks for text in chunk]
    table = pa.table({"text": pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks])})
    labels = Split.of(texts, [[f"l{i}"] for i in range(len(texts))])
    split = Split(table, labels.labels, labels.vocabulary)
    taken = split.take(np.array(rows, np.int64))
    assert taken.texts["text"].to_pylist() == [texts[i] for i in rows]
    assert [taken.vocabulary.ids[taken.labels[i][0]] for i in range(len(rows))] == [f"l{i}" for i in rows]


def test_rows_are_taken_in_pieces_where_one_array_cannot_hold_them():
    texts = [str(i) * 4 for i in range(10)]
    column = Split.of(texts, [["a"]] * 10).texts["text"]
    taken = take_strings(column, np.array([9, 0, 5, 5, 1]), piece_bytes=10)
    assert taken.to_pylist() == [texts[i] for i in (9, 0, 5, 5, 1)]
    assert taken.num_chunks > 1


def test_a_mask_takes_rows_too():
    taken = Split.of(["x", "y"], [["a"], ["b"]]).take(np.array([False, True]))
    assert taken.texts["text"].to_pylist() == ["y"]
    assert taken.label_names(0) == ["b"]


def test_features_follow_their_rows():
    split = Split.of(["", ""], [["a"], ["b"]])
    split = Split(split.texts, split.labels, split.vocabulary, sp.csr_matrix(np.eye(2, dtype=np.float32)))
    assert split.take(np.array([1])).features.toarray().tolist() == [[0, 1]]


def test_a_split_has_texts_unless_it_has_features_only():
    empty, full = Split.of([""], [["a"]]), Split.of(["x"], [["a"]])
    features = sp.csr_matrix((1, 1))
    assert empty.has_texts
    assert Split(full.texts, full.labels, full.vocabulary, features).has_texts
    assert not Split(empty.texts, empty.labels, empty.vocabulary, features).has_texts


def test_the_fingerprint_knows_texts_and_labels_but_not_chunks():
    split = Split.of(["ab", "c"], [["x"], []])
    chunked = pa.table({"text": pa.chunked_array([["ab"], ["c"]])})
    padded = pa.table({"text": pa.array(["z", "ab", "c"]).slice(1)})
    assert Split(chunked, split.labels, split.vocabulary).fingerprint == split.fingerprint
    assert Split(padded, split.labels, split.vocabulary).fingerprint == split.fingerprint
    others = [
        Split.of(["a", "bc"], [["x"], []]),
        Split.of(["ab", "c"], [[], ["x"]]),
        Split.of(["ab", "c"], [["y"], []]),
        Split.of({"text": ["ab", "c"], "title": ["", ""]}, [["x"], []]),
        Split(split.texts, split.labels, split.vocabulary, sp.csr_matrix((2, 3))),
    ]
    assert len({split.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_a_data_set_of_lists_has_one_vocabulary_for_all_splits():
    data = Dataset.of({"train": (["x"], [["b"]]), "test": (["y"], [["a", "b"]])})
    assert data.vocabulary.ids == data.train.vocabulary.ids == data.test.vocabulary.ids == ["a", "b"]
    assert data.train.labels[0].tolist() == [1]
    assert data.test.labels[0].tolist() == [0, 1]


def test_a_split_moves_only_to_a_vocabulary_that_holds_its_labels():
    split = Split.of(["x"], [["a"]])
    assert split.over(Vocabulary.of(["z", "a"])).labels[0].tolist() == [1]
    with pytest.raises(DataError, match="none for 'a'"):
        split.over(Vocabulary.of(["z"]))


def test_an_official_vocabulary_names_labels_and_moves_none():
    data = Dataset.of({"train": (["x"], [["b", "a"]])})
    named = data.named_by(Vocabulary.of(["c", "b"], {"b": "Bee", "c": "Sea"}))
    assert named.vocabulary.ids == ["a", "b"]
    assert named.train.label_names(0) == ["a", "Bee"]
    assert named.official is not None
    assert named.official.ids == ["c", "b"]


def test_a_missing_split_says_which_there_are():
    data = Dataset.of({"train": (["x"], [["a"]])}, name="mine")
    with pytest.raises(DataError, match=r"mine has no split 'dev', only train; hold_out"):
        _ = data.dev


def test_holding_out_divides_train_by_a_seeded_draw(tiny):
    data = tiny(n_texts=50)
    held = data.hold_out(share=0.2, seed=1)
    assert (len(held.train), len(held.dev)) == (40, 10)
    texts = held.train.texts["text"].to_pylist() + held.dev.texts["text"].to_pylist()
    assert sorted(texts) == sorted(data.train.texts["text"].to_pylist())
    assert held.dev.fingerprint == data.hold_out(share=0.2, seed=1).dev.fingerprint
    assert held.dev.fingerprint != data.hold_out(share=0.2, seed=2).dev.fingerprint
    assert held.facts["held_out"] == {"share": 0.2, "at_most": 4000, "seed": 1}
    assert len(data.hold_out(at_most=3).dev) == 3


def test_holding_out_keeps_a_dev_that_is_there_and_refuses_an_empty_one(tiny):
    data = tiny(splits=("train", "dev"))
    assert data.hold_out() is data
    with pytest.raises(DataError, match="leaves no text"):
        tiny(n_texts=5).hold_out(share=0.1)


def test_a_split_is_read_record_by_record():
    split = Split.of([{"text": "x", "title": "t"}, {"text": "y", "title": ""}], [["b", "a"], []])
    records = [{"text": "x", "title": "t", "labels": ["a", "b"]}, {"text": "y", "title": "", "labels": []}]
    assert list(split) == records
    assert [split[0], split[-1], split[np.int64(1)]] == [records[0], records[1], records[1]]
    assert Split.of(list(split)).fingerprint == split.fingerprint
    with pytest.raises(IndexError):
        split[2]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(1, 3), "bc"),
        (slice(None, None, -1), "dcba"),
        (slice(9, None), ""),
        ([3, 0], "da"),
        (np.array([2, 2]), "cc"),
        (np.array([True, False, False, True]), "ad"),
        ((np.array([1]), ...), "b"),
        ([], ""),
    ],
)
def test_slices_arrays_and_masks_of_a_split_are_splits(rows, expected):
    part = Split.of(list("abcd"), [[letter] for letter in "abcd"])[rows]
    assert isinstance(part, Split)
    assert part.vocabulary.ids == list("abcd")
    assert "".join(part.texts["text"].to_pylist()) == expected
    assert [record["labels"] for record in part] == [[letter] for letter in expected]


def test_data_are_short_where_they_are_shown_and_html_is_escaped():
    split = Split.of([f"<script>{'long ' * 100}"] * 30, [["<i>a</i>"]] * 30)
    data = Dataset("<mine>", {"train": split}, split.vocabulary)
    assert repr(split) == "Split(30 texts (text), 1 labels)"
    assert repr(data) == "Dataset('<mine>', train: 30 texts, 1 labels)"
    assert repr(split.vocabulary) == "Vocabulary(1 labels: <i>a</i>)"
    assert repr(Vocabulary.of([])) == "Vocabulary(0 labels)"
    assert repr(Vocabulary.of(list("abcd"))) == "Vocabulary(4 labels: a, b, c, …)"
    for shown in (split, data, split.vocabulary):
        page = shown._repr_html_()
        assert not [mark for mark in ("<script>", "<i>", "<mine>") if mark in page]
        assert len(page) < 5000
    assert "and 20 more" in split._repr_html_()
    parents = Vocabulary.of(["a"], {"p": "Plants"}, parents={"a": ["p"]})
    assert "Plants" in parents._repr_html_()
