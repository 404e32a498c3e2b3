import json

import pytest

from longtail.data import bundled_datasets, load_dataset, load_vocabulary
from longtail.data.dataset import Dataset
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError


def put(path, *rows):
    path.write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows))
    return path


def test_a_data_set_that_is_loaded_comes_back(tiny):
    data = tiny()
    assert load_dataset(data) is data
    with pytest.raises(DataError, match="format and its options are for files"):
        load_dataset(data, text_column="x")


def test_lists_make_a_data_set():
    data = load_dataset({"train": (["one", "two"], [["a"], ["b"]])})
    assert isinstance(data, Dataset)
    assert data.train.label_names(1) == ["b"]


def test_an_unknown_source_says_what_is_near_and_what_to_do(tmp_path, monkeypatch):
    put(tmp_path / "texts.jsonl", ("one", ["a"]))
    with pytest.raises(DataError, match=r"no file or folder .*text\.jsonl.* mean '.*texts\.jsonl'\? .*Give the path"):
        load_dataset(tmp_path / "text.jsonl")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"did you mean 'texts\.jsonl'\?"):
        load_dataset("texts.json")
    with pytest.raises(DataError, match="nor a bundled data set of that name"):
        load_dataset(tmp_path / "nowhere" / "at" / "all")


def test_every_bundled_data_set_loads_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in bundled_datasets():
        data = load_dataset(name)
        assert data.name == name
        assert len(data.train) > 0
        assert len(data.vocabulary) > 0


def test_a_folder_here_wins_over_a_bundled_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in bundled_datasets():
        (tmp_path / name).mkdir()
        put(tmp_path / name / "train.jsonl", ("mine", ["a"]))
        assert load_dataset(name).train.texts["text"].to_pylist() == ["mine"]


def test_a_vocabulary_names_labels_and_adds_none(tmp_path):
    path = put(tmp_path / "a.jsonl", ("one", ["b"]), ("two", ["a"]))
    (tmp_path / "names.tsv").write_text("b\tBee\tbumblebee\nc\tSea\n")
    (tmp_path / "hierarchy.tsv").write_text("b\tc\n")
    data = load_dataset(path, vocabulary=tmp_path / "names.tsv")
    assert data.vocabulary.ids == ["a", "b"]
    assert data.vocabulary.names == ["a", "Bee"]
    assert data.official.ids == ["b", "c"]
    assert data.facts["files"]["official"] == str(tmp_path / "names.tsv")
    named = load_vocabulary(tmp_path / "names.tsv", hierarchy=tmp_path / "hierarchy.tsv")
    assert named.parents(0) == ["c"]
    assert load_dataset(path, vocabulary=named).vocabulary.parent_names == {"c": "Sea"}
    assert load_dataset({"train": (["x"], [["b"]])}, vocabulary=named).vocabulary.names == ["Bee"]


def test_a_given_vocabulary_wins_over_the_names_in_the_folder(tmp_path):
    put(tmp_path / "train.jsonl", ("one", ["a", "b"]))
    (tmp_path / "labels.txt").write_text("a\tfrom the folder\talias\nb\tBee\n")
    data = load_dataset(tmp_path, vocabulary=Vocabulary.of(["a"], {"a": "given"}))
    assert data.vocabulary.names == ["given", "Bee"]
    assert data.vocabulary.alternatives(0) == ["alias"]


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*names\.tsv"):
        load_vocabulary(tmp_path / "names.tsv")


def test_facts_are_plain_data(tmp_path):
    data = load_dataset(put(tmp_path / "a.jsonl", ("one", ["a"])), fields=[])
    assert json.loads(json.dumps(data.facts)) == {
        "source": str(tmp_path / "a.jsonl"),
        "format": "folder",
        "options": {"on_bad_utf8": "error", "block_bytes": 4 << 20, "text_column": "text", "label_column": "labels"}
        | {"fields": [], "numbers": []},
        "columns": {},
        "files": {},
    }


def test_reading_tells_how_it_advances(tmp_path):
    class Watch:
        def __init__(self):
            self.seen = []

        def step(self, name, total=None, unit=""):
            from contextlib import nullcontext

            return nullcontext(lambda amount: self.seen.append((name, amount)))

    watch = Watch()
    load_dataset(put(tmp_path / "a.jsonl", ("one", ["a"]), ("two", [])), progress=watch)
    assert watch.seen == [("read train", 2)]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "n_texts", "n_labels"),
    [
        ("cooking-stackexchange", {"train": 12_404, "test": 3_000}, 736),
        ("debtags", {"train": 25_638, "test": 4_665}, 598),
    ],
)
def test_shared_data_sets_are_read_as_their_sources_describe_them(shared, name, n_texts, n_labels):
    data = load_dataset(shared / "data" / name)
    assert {split: len(part) for split, part in data.splits.items()} == n_texts
    assert len(data.vocabulary) == n_labels
    assert data.train.texts.column_names == ["text"]


@pytest.mark.shared
def test_eurlex_has_fields_an_official_vocabulary_and_a_hierarchy(shared):
    data = load_dataset(shared / "data" / "eurlex57k")
    assert (len(data.train), len(data.dev), len(data.vocabulary), len(data.official)) == (45_000, 6_000, 4_197, 7_201)
    assert data.dev.texts.column_names == ["text", "id", "title", "type"]
    assert (data.train.labels.texts_per_label() > 0).sum() == 4_108
    assert (data.train.labels.texts_per_label() == 1).sum() == 709
    at = data.official.position["100"]
    assert data.official.names[at] == "racial conflict"
    assert data.official.parents(at) == ["458"]
