import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import load_dataset
from longtail.data.dataset import Split
from longtail.data.formats.fasttext import write
from longtail.errors import DataError


def read(path, text, **options):
    path.write_text(text, encoding="utf-8")
    split = load_dataset(path, **options).train
    rows = [[split.vocabulary.ids[label] for label in split.labels[i]] for i in range(len(split))]
    return list(zip(split.texts["text"].to_pylist(), rows, strict=True))


def test_labels_are_words_with_the_prefix_wherever_they_stand(tmp_path):
    text = (
        "__label__eggs __label__boiling how long  to boil\n"
        "\n"
        "no label here\n"
        "in __label__the-middle and at the end\t__label__end\n"
        "__label__only\n"
        "a__label__b stays, so does __label__\n"
    )
    assert read(tmp_path / "a.txt", text) == [
        ("how long  to boil", ["boiling", "eggs"]),
        ("no label here", []),
        ("in and at the end", ["end", "the-middle"]),
        ("", ["only"]),
        ("a__label__b stays, so does __label__", []),
    ]


def test_the_prefix_may_be_another(tmp_path):
    assert read(tmp_path / "a.txt", "#(x one\n", format="fasttext", label_prefix="#(") == [("one", ["x"])]


def test_splits_are_found_by_suffix_too(tmp_path):
    (tmp_path / "cooking.train").write_text("__label__a one\n")
    (tmp_path / "cooking.valid").write_text("__label__b two\n")
    data = load_dataset(tmp_path)
    assert data.facts["format"] == "fasttext"
    assert list(data.splits) == ["train", "dev"]


WORD = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5).filter(
    lambda word: "__label__" not in word
)


@given(st.lists(st.tuples(st.lists(WORD, min_size=1, max_size=4), st.lists(WORD, max_size=3)), min_size=1, max_size=5))
def test_a_split_survives_writing_and_reading(tmp_path_factory, rows):
    split = Split.of([" ".join(words) for words, _ in rows], [labels for _, labels in rows])
    path = tmp_path_factory.mktemp("round") / "texts.txt"
    write(split, path)
    assert load_dataset(path, format="fasttext").train.fingerprint == split.fingerprint


def test_a_label_with_white_space_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match=r"must not contain white space .* got 'a b'"):
        write(Split.of(["x"], [["a b"]]), tmp_path / "a.txt")
