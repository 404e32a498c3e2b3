"""Labels of saved models are changed without training: what is suggested then, and what stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail
from longtail.data.dataset import Dataset
from longtail.data.skos import read_release
from longtail.errors import ConfigError, LongtailError, ModelFormatError
from longtail.label_editor import LabelEditor, id_of_name
from longtail.methods import create_method, load_model

STACK = {"members": ["linear", "knn"], "n_folds": 2, "ranker": {"kind": "logistic"}}


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=700, n_labels=12, named=True)


@pytest.fixture(scope="module", params=["linear", "knn", "stack"])
def saved(request: pytest.FixtureRequest, data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has never seen `label3`."""
    train = data.train
    ids = [[train.vocabulary.ids[label] for label in train.labels[row]] for row in range(len(train))]
    kept = [[label for label in row if label != "label3"] for row in ids]
    texts = train.texts["text"].to_pylist()
    model = create_method(request.param, STACK if request.param == "stack" else {}).fit(texts, kept)
    path = tmp_path_factory.mktemp("models") / request.param
    model.save(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    load_model(saved).save(tmp_path / "m")
    return tmp_path / "m"


def with_label(data: Dataset, wanted: str, has: bool = True) -> list[str]:
    split = data.test
    number = split.vocabulary.position[wanted]
    return [
        text
        for text, labels in zip(split.texts["text"].to_pylist(), split.labels, strict=True)
        if (number in labels) == has
    ]


def test_a_label_is_added_from_five_examples(folder: Path, data: Dataset) -> None:
    texts = data.test.texts["text"].to_pylist()
    before = load_model(folder).predict(texts, 11)
    examples, asked = np.split(np.array(with_label(data, "label3")), [5])
    editor = LabelEditor(folder, person="Anna")
    edit = editor.add("Third label", examples.tolist(), label_id="label3", parents=["label1"])
    assert (edit.person, edit.action, len(edit.examples)) == ("Anna", "add", 5)
    model = load_model(folder)
    found = [{s.id: s for s in row} for row in model.predict(asked.tolist(), 3)]
    assert np.mean(["label3" in row for row in found]) > 0.7
    assert next(row["label3"].name for row in found if "label3" in row) == "Third label"
    others = model.predict(with_label(data, "label3", has=False), 3)
    assert np.mean(["label3" in {s.id for s in row} for row in others]) < 0.4
    after = model.predict(texts, 12)  # old labels have the scores that they had, to the last bit
    assert [[s for s in row if s.id != "label3"] for row in after] == [list(row) for row in before]
    assert all("label3" not in {s.id for s in row} for row in model.predict(texts, 5, deny=["label3"]))
    assert {s.id for row in model.predict(texts, 5, allow=["label3"]) for s in row} == {"label3"}
    assert model.label_history == editor.history
    explanation = model.explain("word3a noise1 word7a word3b", "label3")
    assert explanation.top(1)[0].word in {"word3a", "word3b"}
    assert not explanation.note


def test_what_is_saved_again_keeps_its_edits(folder: Path, data: Dataset, tmp_path: Path) -> None:
    editor = LabelEditor(folder)
    editor.add("New", with_label(data, "label3")[:5])
    editor.rename("label0", "Zero")
    editor.merge("label1", "label2")
    editor.retire("label5")
    model = load_model(folder)
    model.save(tmp_path / "again")
    again, texts = load_model(tmp_path / "again"), data.test.texts["text"].to_pylist()
    assert again.predict(texts, 6) == model.predict(texts, 6) == editor.model.predict(texts, 6)
    suggested = {s.id: s.name for row in again.predict(texts, 12) for s in row}
    assert suggested["label0"] == "Zero"
    assert not {"label1", "label5"} & set(suggested)
    assert suggested["new"] == "New"
    for _ in range(4):
        editor.undo()
    assert load_model(folder).predict(texts, 6) == load_model(folder).predict(texts, 6)
    assert [edit.action for edit in load_model(folder).label_history][4:] == ["undo"] * 4


def test_everything_can_be_undone(folder: Path, data: Dataset) -> None:
    texts = data.test.texts["text"].to_pylist()
    before = load_model(folder).predict(texts, 8)
    editor = LabelEditor(folder)
    editor.merge("label1", "label2")
    editor.retire("label4")
    editor.restore("label4")
    assert load_model(folder).predict(texts, 8) != before
    for _ in range(3):
        editor.undo()
    assert load_model(folder).predict(texts, 8) == before
    with pytest.raises(ConfigError, match="no change of labels left to undo"):
        editor.undo()


def test_a_refused_edit_changes_nothing(folder: Path) -> None:
    manifest = (folder / "manifest.json").read_bytes()
    editor = LabelEditor(folder)
    with pytest.raises(ConfigError, match="no label 'labl1'; did you mean 'label1'"):
        editor.rename("labl1", "x")
    with pytest.raises(ConfigError, match="into another label"):
        editor.merge("label1", "label1")
    assert (folder / "manifest.json").read_bytes() == manifest
    assert editor.history == ()


def test_two_editors_do_not_overwrite_each_other(folder: Path) -> None:
    one, two = LabelEditor(folder), LabelEditor(folder)
    one.rename("label0", "Zero")
    with pytest.raises(LongtailError, match="changed by somebody else meanwhile; nothing was written"):
        two.rename("label1", "One")
    assert len(load_model(folder).label_history) == 1


def test_a_model_whose_steps_had_fewer_options_when_it_was_saved_can_be_edited(folder: Path) -> None:
    from longtail.methods.base import MODEL
    from longtail.persist import amend_manifest, revision_of

    steps = json.loads((folder / "manifest.json").read_text())["score_steps"]
    steps.append({"kind": "tail"})  # all its options at their defaults, and not written
    amend_manifest(folder, MODEL, {"score_steps": steps}, revision_of(folder))
    editor = LabelEditor(folder)
    editor.rename("label0", "Zero")
    editor.undo()
    assert len(load_model(folder).label_history) == 2


def test_a_manifest_with_impossible_edits_is_refused(folder: Path) -> None:
    from longtail.methods.base import MODEL
    from longtail.persist import amend_manifest, revision_of

    steps = [{"kind": "edits", "history": [{"action": "retire", "label": "nobody"}]}]
    steps += json.loads((folder / "manifest.json").read_text())["score_steps"]
    amend_manifest(folder, MODEL, {"score_steps": steps}, revision_of(folder))
    with pytest.raises(ModelFormatError, match="no label with the id 'nobody'"):
        load_model(folder)


def test_harm_counts_right_labels_that_are_pushed_out(folder: Path, data: Dataset) -> None:
    editor = LabelEditor(folder)
    assert editor.harm(data.test).n_displaced == 0
    editor.add("New", with_label(data, "label3")[:5])
    harm = editor.harm(data.test)
    assert harm.n_texts == len(data.test)
    assert harm.n_new > 0
    assert 0 <= harm.n_displaced <= harm.n_right_before


def test_a_label_without_examples_is_known_but_not_suggested(folder: Path, data: Dataset) -> None:
    LabelEditor(folder).add("Later", alternatives=["some day"])
    model = load_model(folder)
    assert model.vocabulary_.ids[-1] == "later"
    assert "later" not in {s.id for row in model.predict(data.test.texts["text"].to_pylist(), 12) for s in row}


@pytest.mark.parametrize("method", ["linear", "lexical", "stack"])
def test_a_label_without_examples_is_suggested_where_its_names_occur(
    method: str, data: Dataset, tmp_path: Path
) -> None:
    ids = data.train.vocabulary.ids
    kept = [[ids[label] for label in labels if ids[label] != "label3"] for labels in data.train.labels]
    known = data.train.vocabulary.take(np.array([n for n, label in enumerate(ids) if label != "label3"]))
    model = create_method(method, STACK if method == "stack" else {})
    model.fit(data.train.texts["text"].to_pylist(), kept, vocabulary=known).save(tmp_path / "m")
    texts = data.test.texts["text"].to_pylist()
    before = load_model(tmp_path / "m").predict(texts, 11)
    editor = LabelEditor(tmp_path / "m")
    editor.add("no such word", alternatives=["word3b"], label_id="label3")
    model = load_model(tmp_path / "m")
    after = model.predict(texts, 12)
    assert [[s for s in row if s.id != "label3"] for row in after] == [list(row) for row in before], "to the last bit"
    found = [{s.id for s in row} for row in model.predict(texts, 5)]
    assert ["label3" in row for row in found] == ["word3b" in text.split() for text in texts]
    assert all("label3" not in {s.id for s in row} for row in model.predict(texts, 5, deny=["label3"]))
    assert {s.id for row in model.predict(texts, 5, allow=["label3"]) for s in row} == {"label3"}
    explanation = model.explain("noise1 word3b noise2", "label3")
    assert (explanation.top(1)[0].word, explanation.note) == ("word3b", "")
    assert explanation.score is not None
    editor.rename("label3", "word3c")
    renamed = [{s.id for s in row} for row in load_model(tmp_path / "m").predict(texts, 5)]
    assert ["label3" in row for row in renamed] == [bool({"word3b", "word3c"} & set(text.split())) for text in texts]


def test_lexical_learns_a_label_from_examples(data: Dataset, tmp_path: Path) -> None:
    longtail.Lexical().fit(data.train).save(tmp_path / "m")
    LabelEditor(tmp_path / "m").add("Both", ["word3a word7b", "word3b word7a", "word3a word7a word1a"])
    [row] = load_model(tmp_path / "m").predict(["word3a word7a noise1"], 3)
    assert "both" in {s.id for s in row}


def test_a_new_name_that_cannot_be_looked_for_is_no_fault(data: Dataset, tmp_path: Path) -> None:
    longtail.Linear().fit(data.train).save(tmp_path / "m")
    editor = LabelEditor(tmp_path / "m")
    for name in ("2024", "a name of many more words than are ever looked for in any text"):
        editor.add(name)
        assert load_model(tmp_path / "m").predict(["word3a word3b", ""], 3)


def test_a_method_that_cannot_learn_from_examples_says_so(data: Dataset, tmp_path: Path) -> None:
    longtail.Linear(calibrate=False).fit(data.train).save(tmp_path / "m")
    with pytest.raises(
        ConfigError, match=r"\(linear\) cannot learn labels from examples: that needs calibrated scores"
    ):
        LabelEditor(tmp_path / "m").add("New", ["word3a word3b"])


TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://x/> .
:label0 a skos:Concept ; skos:prefLabel "Null"@en .
:label1 a skos:Concept ; skos:prefLabel "One"@en ; dct:isReplacedBy :label2 ; owl:deprecated true .
:label2 a skos:Concept ; skos:prefLabel "label2"@en .
:label4 a skos:Concept ; skos:prefLabel "label4"@en ; owl:deprecated true .
:label5 a skos:Concept ; skos:prefLabel "label5"@en ; dct:isReplacedBy :label20 .
:label20 a skos:Concept ; skos:prefLabel "Twenty"@en ; skos:broader :label2 .
"""


def test_a_release_of_a_vocabulary_is_applied_at_once(folder: Path, data: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("rdflib")
    (tmp_path / "new.ttl").write_text(TURTLE)
    editor = LabelEditor(folder)
    report = editor.sync(read_release(tmp_path / "new.ttl", ids="local"))
    made: dict[str, Any] = {(edit.action, edit.label): edit for edit in report.edits}
    assert set(made) == {
        ("rename", "label0"), ("rename", "label1"), ("add", "label20"), ("merge", "label1"), ("retire", "label4"),
        ("merge", "label5"),
    }  # fmt: skip
    assert made["merge", "label5"].into == "label20"
    assert "label6" in report.missing
    model = load_model(folder)
    suggested = {s.id: s.name for row in model.predict(data.test.texts["text"].to_pylist(), 12) for s in row}
    assert suggested["label0"] == "Null"
    assert not {"label1", "label4", "label5"} & set(suggested)
    assert suggested["label20"] == "Twenty"
    assert editor.sync(read_release(tmp_path / "new.ttl", ids="local")).edits == ()  # nothing is left to do


def test_names_become_ids() -> None:
    assert id_of_name("  Heat pumps (GPL-3) ") == "heat-pumps-gpl-3"
