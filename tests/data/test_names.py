import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.names import numbered_names, read_hierarchy, read_names, write_hierarchy, write_names
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r|\ufeff"), min_size=1).filter(
    str.strip
)


def test_a_line_may_end_after_id_name_or_alternatives(tmp_path):
    (tmp_path / "labels.txt").write_text("b\nc\tSea\t\na\tAye\tone | two|three\n\n", encoding="utf-8")
    names = read_names(tmp_path / "labels.txt")
    assert names.ids == ["b", "c", "a"]
    assert names.names == ["b", "Sea", "Aye"]
    assert names.alternatives(2) == ["one", "two|three"]
    assert names.alternatives(1) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tA\n\tB\n", r"labels\.txt:2: a line must start with a label id"),
        ("a\nb\na\tagain\n", r"labels\.txt:3: label ids must be distinct, got 'a' as in line 1"),
        ("a\tb\tc\td\n", r"labels\.txt:1: .* got 4 cells"),
    ],
)
def test_faults_of_a_file_of_names_have_their_line(tmp_path, text, message):
    (tmp_path / "labels.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_names(tmp_path / "labels.txt")


def test_a_hierarchy_gives_parents_once_and_their_names_where_told(tmp_path):
    (tmp_path / "h.tsv").write_text("a\tp\na\tq\tQueue\na\tp\nb\tp\n")
    hierarchy = read_hierarchy(tmp_path / "h.tsv")
    assert hierarchy.ids == ["a", "b"]
    assert hierarchy.parents(0) == ["p", "q"]
    assert hierarchy.parent_names == {"p": "p", "q": "Queue"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("a\n", r"h\.tsv:1: .* got 1 cells"), ("a\tb\nc\tc\n", r"h\.tsv:2: .*own parent"), ("\tb\n", "h.tsv:1")],
)
def test_faults_of_a_hierarchy_have_their_line(tmp_path, text, message):
    (tmp_path / "h.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_hierarchy(tmp_path / "h.tsv")


@given(
    st.dictionaries(CELL, st.tuples(CELL, st.lists(CELL, max_size=3)), max_size=6),
    st.dictionaries(CELL, CELL, max_size=3),
)
def test_names_and_hierarchy_survive_writing_and_reading(tmp_path_factory, labels, outside):
    folder = tmp_path_factory.mktemp("names")
    parents = {label: [p for p in (outside | labels) if p != label] for label in labels}
    named = {label: name for label, (name, _) in labels.items()}
    vocabulary = Vocabulary.of(list(labels), outside | named, {k: v for k, (_, v) in labels.items()}, parents)
    write_names(vocabulary, folder / "labels.txt")
    write_hierarchy([vocabulary], folder / "h.tsv")
    again = read_names(folder / "labels.txt")
    if (folder / "h.tsv").exists():
        again = again.described_by(again, read_hierarchy(folder / "h.tsv"))
    assert again.table.to_pydict() == vocabulary.table.to_pydict()
    assert again.parent_names == vocabulary.parent_names


@pytest.mark.parametrize(
    "vocabulary",
    [
        Vocabulary.of(["a\tb"]),
        Vocabulary.of(["a"], {"a": "two\nlines"}),
        Vocabulary.of(["a"], alternatives={"a": ["x | y"]}),
        Vocabulary.of(["a"], alternatives={"a": ["x", ""]}),
    ],
)
def test_names_that_the_file_cannot_hold_are_refused(tmp_path, vocabulary):
    with pytest.raises(DataError, match="must not"):
        write_names(vocabulary, tmp_path / "labels.txt")


def test_numbered_names_come_from_the_file_given_or_one_of_a_usual_name(tmp_path):
    (tmp_path / "output-items.txt").write_text("zero\none\n")
    (tmp_path / "mine.txt").write_text("null\n")
    assert numbered_names(None, tmp_path)["labels"].names == ["zero", "one"]
    assert numbered_names(str(tmp_path / "mine.txt"), tmp_path)["labels"].table.to_pydict()["name"] == ["null"]
    assert numbered_names(None) == {}
    with pytest.raises(DataError, match="label_names must be a file"):
        numbered_names(str(tmp_path / "nothing.txt"))
