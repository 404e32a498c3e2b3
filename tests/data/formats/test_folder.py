import gzip
import json
import string

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail.data import load_dataset, write_dataset
from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, DataError


def put(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(text="a text", labels=("a",), **more):
    return {"text": text, "labels": list(labels), **more}


def test_a_folder_has_splits_names_and_a_hierarchy(tmp_path):
    (tmp_path / "train.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress(json.dumps(row("one", ["b", "a", "b"], title="t")).encode())
    )
    (tmp_path / "dev.jsonl.gz").write_bytes(gzip.compress(json.dumps(row("two", ["new"])).encode()))
    put(tmp_path / "test.jsonl", row("three", []))
    (tmp_path / "labels.txt").write_text("b\tBee\tbumblebee | wasp\nlonely\tAlone\n")
    (tmp_path / "vocabulary.txt").write_text("a\tAye\nb\tnot this\nunused\tUnused\ntop\tTop\n")
    (tmp_path / "hierarchy.tsv").write_text("b\ttop\nunused\ttop\n")
    data = load_dataset(tmp_path)
    assert list(data.splits) == ["train", "dev", "test"]
    assert data.vocabulary.ids == ["a", "b", "lonely", "new"]
    assert data.vocabulary.names == ["Aye", "Bee", "Alone", "new"]
    assert data.vocabulary.alternatives(1) == ["bumblebee", "wasp"]
    assert data.vocabulary.parents(1) == ["top"]
    assert data.vocabulary.name_of("top") == "Top"
    assert data.official.ids == ["a", "b", "unused", "top"]
    assert data.official.parents(2) == ["top"]
    assert data.train.label_names(0) == ["Aye", "Bee"]
    assert data.dev.label_names(0) == ["new"], "a label that train does not have stays in the ground truth"
    assert data.train.texts.to_pydict() == {"text": ["one"], "title": ["t"]}
    assert data.name == tmp_path.name
    assert data.facts["format"] == "folder"
    assert data.facts["source"] == str(tmp_path)
    assert data.facts["files"]["official"] == str(tmp_path / "vocabulary.txt")


def test_label_order_depends_on_the_labels_alone(tmp_path):
    put(tmp_path / "one.jsonl", row(labels=["c"]), row(labels=["b", "10", "9"]))
    put(tmp_path / "two.jsonl", row(labels=["9", "b"]), row(labels=["c", "10"]))
    orders = [load_dataset(tmp_path / f"{name}.jsonl").vocabulary.ids for name in ("one", "two")]
    assert orders == [["10", "9", "b", "c"]] * 2


def test_strings_become_columns_and_other_fields_do_not(tmp_path):
    rows = [
        row(day="2020-01-01", year=1999, tags=["x"], mixed="s", late=None, deep={"a": 1}),
        row(day="no date", mixed=5, late="now", extra="e"),
    ]
    table = load_dataset(put(tmp_path / "a.jsonl", *rows)).train.texts
    columns = {"text": ["a text"] * 2, "day": ["2020-01-01", "no date"], "late": ["", "now"], "extra": ["", "e"]}
    assert table.to_pydict() == columns


@pytest.mark.parametrize("block_bytes", [1, 200, 1 << 20])
def test_columns_are_the_same_whatever_the_size_of_a_block(tmp_path, block_bytes):
    rows = [row(day="2020-01-01", mixed="s")] * 3 + [row(title="t", mixed=["s"])] * 3 + [row(day="x")] * 3
    table = load_dataset(put(tmp_path / "a.jsonl", *rows), block_bytes=block_bytes).train.texts
    assert table["day"].to_pylist() == ["2020-01-01"] * 3 + [""] * 3 + ["x"] * 3
    assert table["title"].to_pylist() == [""] * 3 + ["t"] * 3 + [""] * 3
    assert table.column_names == ["text", "day", "title"]


def test_only_the_fields_asked_for_are_kept(tmp_path):
    path = put(tmp_path / "a.jsonl", row(title="t", lang="de", year=1), row(lang="en"))
    assert load_dataset(path, fields=["title"]).train.texts.column_names == ["text", "title"]
    assert load_dataset(path, fields=[]).train.texts.column_names == ["text"]
    with pytest.raises(DataError, match="no line has titel"):
        load_dataset(path, fields=["titel"])
    with pytest.raises(DataError, match=r'a\.jsonl:1: "year" must be a string, got a number'):
        load_dataset(path, fields=["year"])


@pytest.mark.parametrize("fields", [["labels"], ["text"], ["body"]])
def test_the_columns_of_text_and_labels_are_no_further_fields(tmp_path, fields):
    path = put(tmp_path / "a.jsonl", {"body": "one", "text": "two", "labels": ["x"]})
    with pytest.raises(ConfigError, match=rf"fields must not name the columns of text and labels, got {fields[0]}"):
        load_dataset(path, text_column="body", fields=fields)


def test_text_and_labels_may_have_other_names(tmp_path):
    path = put(tmp_path / "a.jsonl", {"abstract": "one", "tags": ["x"], "text": "not this"})
    data = load_dataset(path, text_column="abstract", label_column="tags")
    assert data.train.texts.to_pydict() == {"text": ["one"]}
    assert data.vocabulary.ids == ["x"]


def test_whole_numbers_are_labels_too(tmp_path):
    data = load_dataset(put(tmp_path / "a.jsonl", row(labels=[7, "b"])))
    assert data.vocabulary.ids == ["7", "b"]


def test_nul_characters_long_texts_and_blank_lines_are_read(tmp_path):
    text = "x" * 5_000_000
    rows = [json.dumps(row(text)), json.dumps(row("a\x00b"))]
    (tmp_path / "a.jsonl").write_text(f"\n{rows[0]}\n\n{rows[1]}\n\n")
    assert load_dataset(tmp_path / "a.jsonl").train.texts["text"].to_pylist() == [text, "a\x00b"]


def test_duplicate_ids_of_texts_are_kept_and_no_labels_at_all_make_an_empty_vocabulary(tmp_path):
    data = load_dataset(put(tmp_path / "a.jsonl", row(labels=[], id="1"), row(labels=[], id="1")))
    assert data.train.texts["id"].to_pylist() == ["1", "1"]
    assert len(data.vocabulary) == 0
    assert data.train.labels.labels_per_text().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "x", "labels": ["a"]', r"column 30: a line must be one JSON object: "),
        ('{"text": "x", "labels": ["a"]} {"text": "y", "labels": []}', "one JSON object: Extra data"),
        ('["x"]', "one JSON object, got a list"),
        ('{"labels": ["a"]}', 'must have "text", got "labels"; text_column'),
        ('{"text": null, "labels": ["a"]}', '"text" must be a string, got null'),
        ('{"text": 5, "labels": ["a"]}', '"text" must be a string, got a number'),
        ('{"text": "x", "label": ["a"]}', 'must have "labels" .*, got "text", "label"; label_column'),
        ('{"text": "x", "labels": "a"}', '"labels" must be a list of label ids, got a string'),
        ('{"text": "x", "labels": null}', '"labels" must be a list of label ids, got null'),
        ('{"text": "x", "labels": ["a", null]}', "a string or a whole number of at most 4,300 digits, got null"),
        ('{"text": "x", "labels": [true]}', "got true or false"),
        ('{"text": "x", "labels": [1.5]}', "got a number"),
        ('{"text": "x", "labels": [""]}', "must not be an empty string"),
        ('{"text": "raw \x00 byte", "labels": []}', "Invalid control character"),
        ('{"text": "x\\ud800", "labels": []}', '"text" must be valid Unicode'),
        ('{"text": "x", "labels": ["\\ud800"]}', '"labels" must be valid Unicode'),
        ("[" * 100_000, "one JSON object: "),
    ],
)
def test_a_fault_is_named_with_file_and_line(tmp_path, line, message):
    good = json.dumps(row())
    (tmp_path / "a.jsonl").write_text(f"{good}\n{good}\n{line}\n{good}\n")
    with pytest.raises(DataError, match=rf"a\.jsonl:3: .*{message}"):
        load_dataset(tmp_path / "a.jsonl")


def test_bytes_that_are_not_utf8_stop_or_are_replaced(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x\xff", "labels": ["a"], "t": "\\udfff"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1: column 12: must be UTF-8, got byte 0xff"):
        load_dataset(tmp_path / "a.jsonl")
    texts = load_dataset(tmp_path / "a.jsonl", on_bad_utf8="replace").train.texts
    assert texts.to_pydict() == {"text": ["x\ufffd"], "t": ["\ufffd"]}


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_refused(tmp_path, content):
    (tmp_path / "train.jsonl").write_text(content)
    with pytest.raises(DataError, match=r"train\.jsonl must hold at least one text"):
        load_dataset(tmp_path)


def test_two_files_of_one_split_are_refused(tmp_path):
    put(tmp_path / "train.jsonl", row())
    put(tmp_path / "train.jsonl.gz", row())
    with pytest.raises(DataError, match=r"one file for train, got train\.jsonl and train\.jsonl\.gz"):
        load_dataset(tmp_path)


def test_a_misspelt_option_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="unknown option 'text_colum'; did you mean 'text_column'"):
        load_dataset(put(tmp_path / "a.jsonl", row()), text_colum="text")


def test_a_single_file_is_train_unless_its_name_tells(tmp_path):
    assert list(load_dataset(put(tmp_path / "mine.jsonl", row())).splits) == ["train"]
    assert list(load_dataset(put(tmp_path / "test.jsonl", row())).splits) == ["test"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.just("2020-01-01"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
ROW = st.fixed_dictionaries(
    {"text": st.text(max_size=3), "labels": st.lists(st.sampled_from("abc"), max_size=2)},
    optional={"title": JSON, "date": st.just("2020-01-01") | st.none(), "x": JSON},
)


@given(st.lists(ROW, min_size=1, max_size=5))
def test_arrow_and_the_way_line_by_line_read_the_same(tmp_path_factory, rows):
    path = put(tmp_path_factory.mktemp("ways") / "a.jsonl", *rows)
    fast = load_dataset(path).train
    path.write_text("\n" + path.read_text())  # a blank line is what only the slow way reads
    slow = load_dataset(path).train
    assert slow.texts.to_pydict() == fast.texts.to_pydict()
    assert slow.fingerprint == fast.fingerprint
    strings = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    others = {name for row in rows for name, value in row.items() if not isinstance(value, str | None)}
    assert set(fast.texts.column_names) == strings - others


NAME = st.text(string.ascii_letters + "äöü:/ -", min_size=1, max_size=6).map(str.strip).filter(bool)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SPLIT = st.lists(st.tuples(TEXT, TEXT, st.lists(NAME, max_size=4)), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["train", "dev", "test"]), SPLIT, min_size=1), st.sampled_from(["", ".gz", ".zst"])
)
def test_a_data_set_survives_writing_and_reading(tmp_path_factory, splits, compression):
    made = {
        name: ({"text": [text for text, _, _ in rows], "title": [title for _, title, _ in rows]}, [r[2] for r in rows])
        for name, rows in splits.items()
    }
    data = Dataset.of(made)
    folder = tmp_path_factory.mktemp("round") / "data"
    write_dataset(data, folder, compression)
    again = load_dataset(folder)
    assert list(again.splits) == [name for name in ("train", "dev", "test") if name in splits]
    assert {name: split.fingerprint for name, split in again.splits.items()} == {
        name: split.fingerprint for name, split in data.splits.items()
    }
