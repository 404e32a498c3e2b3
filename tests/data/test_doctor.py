"""The data doctor: what it counts, what it calls a fault, and what it warns of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import doctor
from longtail.data.dataset import Dataset, Split
from longtail.data.doctor import Finding, examination_markdown, examine
from longtail.data.vocabulary import Vocabulary
from longtail.types import LabelMatrix

Rows = Sequence[tuple[str, Sequence[str]]]

GOOD: Rows = [("red apples grow", ["fruit", "red"]), ("a green pear", ["fruit"]), ("one fast red car", ["car", "red"])]


def dataset(names: dict[str, str] | None = None, **splits: Rows) -> Dataset:
    """Splits over one vocabulary, which also has the labels of `names`."""
    ids = sorted({label for rows in splits.values() for _, labels in rows for label in labels} | set(names or {}))
    vocabulary = Vocabulary.of(ids, names)
    parts = {name: Split.of([t for t, _ in rows], [ls for _, ls in rows], vocabulary) for name, rows in splits.items()}
    return Dataset("fruits", parts, vocabulary)


def finding(data: Dataset, kind: str) -> Finding:
    """The one finding of this kind."""
    (found,) = [f for f in examine(data).findings if f.kind == kind]
    return found


def test_sound_data_have_counts_and_no_findings() -> None:
    result = examine(dataset(train=GOOD, test=[("a red pear", ["fruit", "red"])]))
    train, test = result.splits
    assert result.findings == ()
    assert (train.n_texts, train.n_labels, train.n_assignments) == (3, 3, 5)
    assert train.labels_per_text == pytest.approx(5 / 3) and train.words_per_text == pytest.approx(10 / 3)
    assert (train.median_words, train.most_words) == (3, 4)
    assert (test.name, test.n_texts, test.n_labels) == ("test", 1, 2)
    assert result.label_frequency.tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    "splits, kind",
    [
        ({}, "no texts"),
        ({"train": []}, "no texts"),
        ({"test": GOOD}, "no texts"),
        ({"train": [("a text", []), ("another", [])]}, "no labels"),
        ({"train": [("a text", ["one"]), ("another", ["one"])]}, "one label"),
        ({"train": [("", ["one"]), (" \n", ["two"])]}, "only empty texts"),
    ],
)
def test_what_would_break_training_is_a_fault(splits: dict[str, Rows], kind: str) -> None:
    result = examine(dataset(**splits))
    assert [fault.kind for fault in result.faults] == [kind]
    assert "must" in result.faults[0].message and "got" in result.faults[0].message


def test_data_that_came_as_features_need_no_words() -> None:
    data = dataset(train=[("", ["one"]), ("", ["two"])])
    split = data.train
    features = LabelMatrix.from_lists([[0], [1]], 2).to_scipy()
    result = examine(
        Dataset("x", {"train": Split(split.texts, split.labels, split.vocabulary, features)}, data.vocabulary)
    )
    assert result.findings == ()


def test_empty_texts_and_texts_without_labels_are_counted() -> None:
    data = dataset(train=[*GOOD, ("\t", ["car"]), ("no label here", [])])
    assert finding(data, "empty texts").count == 1
    assert finding(data, "empty texts").examples == ("train text 4",)
    assert finding(data, "texts without labels").count == 1
    assert "'no label here'" in finding(data, "texts without labels").examples[0]


def test_a_text_that_stands_twice_is_found_whatever_its_case_and_spaces() -> None:
    data = dataset(train=[*GOOD, ("A  green\nPEAR ", ["car"]), ("a green pear", ["car"]), ("", ["car"]), ("", ["car"])])
    found = finding(data, "repeated texts")
    assert found.count == 2 == examine(data).splits[0].n_repeated
    assert found.examples[1] == "train text 5: 'a green pear' = text 2"


def test_texts_that_cross_splits_are_found_for_each_pair_of_splits() -> None:
    data = dataset(train=GOOD, dev=[("a green pear", ["fruit"]), ("", [])], test=[("A GREEN pear", ["car"]), ("", [])])
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        found = finding(data, f"texts in {one} and {other}")
        assert found.count == 1 and found.examples[0].startswith(f"{other} text 1: ")


def test_labels_unseen_in_training_are_counted_with_their_share_of_assignments() -> None:
    data = dataset(train=GOOD, dev=[("a boat", ["boat", "red"]), ("two boats", ["boat", "ship"])])
    found = finding(data, "labels of dev unseen in training")
    assert found.count == 2
    assert "2 of 3 (66.7 %)" in found.message and "75.0 % of dev's assignments" in found.message
    assert found.examples == ("boat (2 dev texts)", "ship (1 dev texts)")


def test_labels_without_any_text_are_named() -> None:
    found = finding(dataset(train=GOOD, names={"x": "Unused"}), "labels without texts")
    assert (found.count, found.examples) == (1, ("Unused",))


def test_names_that_look_alike_are_shown_with_their_ids() -> None:
    names = {"car": "Motor-Boats", "red": "motor boats", "fruit": "Motor Boat"}
    data = dataset(train=GOOD, names=names)
    assert finding(data, "same label names").examples == ("Motor-Boats [car] = motor boats [red]",)
    assert finding(data, "near label names").examples == ("Motor-Boats [car] ~ Motor Boat [fruit]",)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("lost \ufffd bytes", "replacement characters"),
        ("EinfÃ¼hrung", "mojibake"),
        ("itâ€™s broken", "mojibake"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "mojibake"),
        ("20 Â°C", "mojibake"),
        ("nul \x00 byte", "control characters"),
        ("escape \x1b[0m", "control characters"),
        ("quote\x92s", "control characters"),
    ],
)
def test_broken_characters_are_found_and_shown(text: str, kind: str) -> None:
    found = finding(dataset(train=[*GOOD, (text, ["car"])]), kind)
    assert found.count == 1
    assert found.examples[0].startswith("train text 4: ") and repr(text)[1:5] in found.examples[0]


@pytest.mark.parametrize(
    "text",
    ["Einführung in São Paulo", "SÃO JOÃO", "tab\tand\nline", "it’s “fine” – 5 €", "привет", "Ñandú Ð", "日本語"],
)
def test_sound_characters_are_left_alone(text: str) -> None:
    assert examine(dataset(train=[*GOOD, (text, ["car"])])).findings == ()


def test_broken_characters_are_found_in_every_field() -> None:
    texts = {"text": ["one", "two"], "title": ["fine", "EinfÃ¼hrung"]}
    vocabulary = Vocabulary.of(["a", "b"])
    data = Dataset("x", {"train": Split.of(texts, [["a"], ["b"]], vocabulary)}, vocabulary)
    assert "'EinfÃ¼hrung'" in finding(data, "mojibake").examples[0]


def test_broken_characters_come_with_file_and_line_where_known(tmp_path: Path) -> None:
    rows = [*GOOD, ("EinfÃ¼hrung", ["car"])]
    lines = [json.dumps({"text": text, "labels": list(labels)}) for text, labels in rows]
    file = tmp_path / "train.jsonl"
    file.write_text("\n\n".join(lines) + "\n", "utf-8")
    data = dataset(train=rows)
    known = Dataset(data.name, data.splits, data.vocabulary, {"format": "folder", "files": {"train": str(file)}})
    assert finding(known, "mojibake").examples[0].startswith(f"train text 4 ({file}:7): ")


def test_long_texts_are_quoted_around_the_fault() -> None:
    text = "before " * 50 + "Ã¼" + " after" * 50
    example = finding(dataset(train=[*GOOD, (text, ["car"])]), "mojibake").examples[0]
    assert "Ã¼ after" in example and example.endswith("…") and len(example) < 100


def test_examples_are_few_however_many_there_are() -> None:
    found = finding(dataset(train=[*GOOD, *((f"text {i}", []) for i in range(20))]), "texts without labels")
    assert found.count == 20 and len(found.examples) == doctor.N_EXAMPLES


def test_the_same_is_found_however_the_texts_are_cut_into_blocks() -> None:
    data = dataset(train=[*GOOD, *GOOD, ("EinfÃ¼hrung", []), ("", ["car"])], test=[GOOD[0]])
    assert examine(data, block_texts=2).plain() == examine(data).plain()


def test_progress_counts_every_text() -> None:
    class Counting:
        def __init__(self) -> None:
            self.done = 0

        def step(self, name: str, total: int | None = None, unit: str = ""):  # type: ignore[no-untyped-def]
            from contextlib import nullcontext

            return nullcontext(self.advance)

        def advance(self, amount: int) -> None:
            self.done += amount

    progress = Counting()
    examine(dataset(train=GOOD, test=GOOD), progress)
    assert progress.done == 6


def test_the_head_is_the_most_frequent_fifth_of_the_labels_in_training() -> None:
    rows = [(f"text {i}", ["often"]) for i in range(6)] + [("last", ["a", "b", "c", "d"])]
    result = examine(dataset(train=rows, names={"unused": "Unused"}))
    assert result.n_head == 1 and result.head_mass == pytest.approx(0.6)
    assert result.curve() == [(1, 6), (2, 1), (3, 1), (4, 1), (5, 1)]
    bands = {band["from"]: band for band in result.bands()}
    assert (bands[0]["n_labels"], bands[1]["n_labels"], bands[5]["n_labels"]) == (1, 4, 1)
    assert sum(band["share_of_assignments"] for band in bands.values()) == pytest.approx(1)


def test_the_plain_form_is_json_and_stays_small_for_many_labels() -> None:
    n_labels = 20_000
    vocabulary = Vocabulary.of([f"label {i:05d}" for i in range(n_labels)])
    labels = LabelMatrix.from_lists([range(n_labels), range(10)], n_labels)
    split = Split(Split.of(["one text", "two texts"], [[], []]).texts, labels, vocabulary)
    text = json.dumps(examine(Dataset("many", {"train": split}, vocabulary)).plain())
    assert json.loads(text)["splits"]["train"]["n_labels"] == n_labels and len(text) < 5_000


def test_the_report_for_people_has_counts_curve_and_findings() -> None:
    text = examination_markdown(examine(dataset(train=[*GOOD, GOOD[0]], dev=[("a boat", ["boat"])])))
    assert "| train |     4 |" in text and "| 2 to 4" in text
    assert "hold 42.9 % of all assignments" in text
    assert "## Warnings" in text and "occur earlier in train" in text and "## Faults" not in text
    assert "## Faults: training would fail" in examination_markdown(examine(dataset(train=[])))
    assert "Nothing to complain about." in examination_markdown(examine(dataset(train=GOOD)))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.text(max_size=12), st.sets(st.sampled_from("abc"))), max_size=8))
def test_nothing_is_raised_and_all_texts_are_counted_whatever_they_hold(rows: list[tuple[str, set[str]]]) -> None:
    (counts,) = examine(dataset(train=[(text, sorted(labels)) for text, labels in rows])).splits
    words = [len(text.split()) for text, _ in rows]
    assert counts.n_texts == len(rows) == sum(counts.length_counts)
    assert counts.n_unlabelled == sum(not labels for _, labels in rows)
    assert counts.n_empty == words.count(0) and counts.most_words == max(words, default=0)
    assert counts.words_per_text == pytest.approx(np.mean(words) if words else 0)
    folded = [" ".join(text.lower().split()) for text, _ in rows]
    assert counts.n_repeated == sum(bool(text) and text in folded[:i] for i, text in enumerate(folded))
