import csv
import gzip
import string

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import load_dataset, write_split
from longtail.data.dataset import Split
from longtail.errors import ConfigError, DataError


def put(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def labels_of(split):
    return [[split.vocabulary.ids[label] for label in split.labels[i]] for i in range(len(split))]


def test_columns_of_a_csv_are_chosen_by_name(tmp_path):
    path = put(
        tmp_path / "mine.csv",
        'nr,headline,body,subjects,junk\n1,Eggs,"boil, then\npeel",b | a |,x\n2,"say ""hi""",,,\n',
    )
    data = load_dataset(
        path, text_column="body", label_column="subjects", label_separator="|", id_column="nr", fields=["headline"]
    )
    assert data.train.texts.to_pydict() == {
        "text": ["boil, then\npeel", ""],
        "headline": ["Eggs", 'say "hi"'],
        "id": ["1", "2"],
    }
    assert labels_of(data.train) == [["a", "b"], []]
    assert data.name == "mine"


def test_values_stay_the_strings_that_they_are(tmp_path):
    split = load_dataset(put(tmp_path / "a.csv", "text,labels\n007,01;1\nNA,null\n")).train
    assert split.texts["text"].to_pylist() == ["007", "NA"]
    assert labels_of(split) == [["01", "1"], ["null"]]


def test_tabs_compression_and_other_delimiters(tmp_path):
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(b"text\tlabels\na, b\tx;y\n"))
    put(tmp_path / "test.csv", "text,labels\nc,x\n")
    data = load_dataset(tmp_path)
    assert data.train.texts["text"].to_pylist() == ["a, b"]
    assert labels_of(data.test) == [["x"]]
    german = put(tmp_path / "german.csv", "\ufefftext;labels\n1,5 Liter;x,y\n")
    assert labels_of(load_dataset(german, delimiter=";", label_separator=",").train) == [["x", "y"]]


def test_without_quoting_a_quote_is_a_character(tmp_path):
    path = put(tmp_path / "a.tsv", 'text\tlabels\n"open\tx\nnext\ty\n')
    split = load_dataset(path, quoted=False).train
    assert split.texts["text"].to_pylist() == ['"open', "next"]


def test_a_missing_column_is_named_with_those_that_exist(tmp_path):
    path = put(tmp_path / "a.csv", "txt,labels,title\na,b,c\n")
    with pytest.raises(DataError, match=r"one column 'text', got the columns txt, labels, title; did you mean 'txt'\?"):
        load_dataset(path)
    with pytest.raises(DataError, match="one column 'lables'"):
        load_dataset(path, text_column="txt", label_column="lables")
    with pytest.raises(DataError, match="one column 'text', got 2 of that name"):
        load_dataset(put(tmp_path / "b.csv", "text,text,labels\na,b,c\n"))


def test_a_torn_row_is_named_with_its_line(tmp_path):
    path = put(tmp_path / "a.csv", 'text,labels\n"two\nlines",x\na,b,c\n')
    with pytest.raises(DataError, match=r"a\.csv:4: a row must have 2 cells, got 3"):
        load_dataset(path)


def test_bytes_that_are_not_utf8_stop_or_are_replaced(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text,labels\nfine,x\nb\xe4d,x\n")
    with pytest.raises(DataError, match=r"a\.csv:3: column 2: must be UTF-8, got byte 0xe4"):
        load_dataset(tmp_path / "a.csv")
    split = load_dataset(tmp_path / "a.csv", on_bad_utf8="replace").train
    assert split.texts["text"].to_pylist() == ["fine", "b\ufffdd"]


@pytest.mark.parametrize(("content", "message"), [("", "row of column names"), ("text,labels\n", "at least one text")])
def test_an_empty_table_is_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        load_dataset(put(tmp_path / "a.csv", content))


def test_nul_characters_and_long_texts_are_read(tmp_path):
    text = "x" * 5_000_000
    split = load_dataset(put(tmp_path / "a.csv", f'text,labels\n"{text}",a\nb\x00c,a\n')).train
    assert split.texts["text"].to_pylist() == [text, "b\x00c"]


def test_a_row_longer_than_a_block_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*a\.csv"):
        load_dataset(put(tmp_path / "a.csv", f'text,labels\n"{"x" * 1000}",a\n'), block_bytes=100)


def test_options_are_strict(tmp_path):
    with pytest.raises(ConfigError, match="label_separator"):
        load_dataset(put(tmp_path / "a.csv", "text,labels\na,b\n"), label_separator="")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([["7", "8"], [], None], pa.list_(pa.string())),
        ([[7, 8], [], None], pa.large_list(pa.int64())),
        (["7;8", "", None], pa.string()),
    ],
)
def test_parquet_labels_may_be_lists_or_cells(tmp_path, labels, kind):
    table = pa.table({"text": pa.array(["a", None, "c"], pa.large_string()), "labels": pa.array(labels, kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    split = load_dataset(tmp_path / "a.parquet").train
    assert split.texts["text"].to_pylist() == ["a", "", "c"]
    assert labels_of(split) == [["7", "8"], [], []]


def test_a_parquet_column_of_numbers_is_one_label_a_text_and_no_text(tmp_path):
    pq.write_table(pa.table({"text": ["a", "b"], "labels": [3, None]}), tmp_path / "a.parquet")
    assert labels_of(load_dataset(tmp_path / "a.parquet").train) == [["3"], []]
    with pytest.raises(DataError, match=r"a\.parquet: column 'text' must hold texts, got int64"):
        load_dataset(tmp_path / "a.parquet", text_column="labels")


def test_parquet_columns_and_damage_are_reported(tmp_path):
    pq.write_table(pa.table({"body": ["a"], "labels": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="got the columns body, labels"):
        load_dataset(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"cannot read .*b\.parquet"):
        load_dataset(tmp_path / "b.parquet")
    pq.write_table(pa.table({"text": ["a"], "labels": [["b"]]}), tmp_path / "c.parquet")
    content = (tmp_path / "c.parquet").read_bytes()
    (tmp_path / "c.parquet").write_bytes(content.replace(b"\x04list", b"\x04\xffist"))
    with pytest.raises(DataError, match=r"cannot read .*c\.parquet.*codec can't decode"):
        load_dataset(tmp_path / "c.parquet")


LABEL = st.text(string.ascii_letters + 'äöü:, "', min_size=1, max_size=6).map(str.strip).filter(bool)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.tuples(TEXT, TEXT, st.lists(LABEL, max_size=4)), min_size=1, max_size=5),
    st.sampled_from(["csv", "csv.gz", "tsv.zst", "parquet", "jsonl.zst"]),
)
def test_a_split_survives_writing_and_reading(tmp_path_factory, rows, suffix):
    texts = {"text": [text for text, _, _ in rows], "title": [title for _, title, _ in rows]}
    split = Split.of(texts, [labels for _, _, labels in rows])
    path = tmp_path_factory.mktemp("round") / f"texts.{suffix}"
    write_split(split, path)
    again = load_dataset(path, fields=["title"] if any(texts["title"]) else []).train
    wanted = split if any(texts["title"]) else Split(split.texts.select(["text"]), split.labels, split.vocabulary)
    assert again.fingerprint == wanted.fingerprint


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\r=x", "'=quoted", "''-twice"]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_spreadsheets_see_no_formulas_and_the_texts_are_read_back(tmp_path, suffix):
    split = Split.of({"text": FORMULAS, "=title": FORMULAS}, [["=a", "+b"], *([] for _ in FORMULAS[1:])])
    path = tmp_path / f"a.{suffix}"
    write_split(split, path)
    with open(path, encoding="utf-8", newline="") as file:
        written = list(csv.reader(file, delimiter="," if suffix == "csv" else "\t"))
    assert written[0] == ["text", "'=title", "labels"]
    assert [row[0] for row in written[1:]] == [f"'{text}" for text in FORMULAS]
    assert written[1][2] == "'+b;=a"
    again = load_dataset(path).train
    assert again.texts["text"].to_pylist() == FORMULAS
    assert again[0]["labels"] == ["+b", "=a"]


def test_a_quote_before_plain_text_is_read_as_it_is(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\n'tis,'a\n")
    assert load_dataset(tmp_path / "a.csv").train[0] == {"text": "'tis", "labels": ["'a"]}


@pytest.mark.parametrize("label", ["a;b", " a", "a\u00a0"])
def test_labels_that_a_cell_cannot_hold_are_refused(tmp_path, label):
    with pytest.raises(DataError, match="neither contain the separator"):
        write_split(Split.of(["x"], [[label]]), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []
