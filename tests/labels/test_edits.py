"""Histories of label edits: what they come to, and which edits are refused."""

from __future__ import annotations

from typing import Any

import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.labels.edits import EditedLabels, LabelEdit, check_history

LABELS = Vocabulary.of(["a", "b", "c", "d"], {"a": "Apple"})


def edit(action: str, label: str = "", **facts: Any) -> LabelEdit:
    return LabelEdit.of({"action": action, "label": label, **facts})


def names(*history: LabelEdit) -> list[str]:
    check_history(history, LABELS)
    return EditedLabels.of(history).vocabulary(LABELS).names


def test_labels_are_renamed_and_added_behind_the_others() -> None:
    history = (edit("rename", "a", name="Apples"), edit("add", "e", name="Elm", parents=("b",), alternatives=("elms",)))
    assert names(*history) == ["Apples", "b", "c", "d", "Elm"]
    vocabulary = EditedLabels.of(history).vocabulary(LABELS)
    assert (vocabulary.parents(4), vocabulary.alternatives(4)) == (["b"], ["elms"])
    assert names(*history, edit("rename", "e", name="Elms"))[4] == "Elms"


def test_merged_labels_are_shown_as_the_last_one_of_a_row() -> None:
    labels = EditedLabels.of([edit("merge", "a", into="b"), edit("merge", "b", into="c")])
    assert labels.shown_as(LABELS).tolist() == [2, 2, 2, 3]
    assert labels.state("a") == "merged into 'c'"


def test_what_was_retired_or_merged_can_be_restored() -> None:
    history = [edit("retire", "a"), edit("merge", "b", into="c"), edit("restore", "a"), edit("restore", "b")]
    check_history(history, LABELS)
    labels = EditedLabels.of(history)
    assert labels.in_use(LABELS).all()
    assert labels.shown_as(LABELS).tolist() == [0, 1, 2, 3]
    assert EditedLabels.of(history[:1]).in_use(LABELS).tolist() == [False, True, True, True]


def test_undo_takes_back_one_edit_after_the_other() -> None:
    history = [edit("rename", "a", name="x"), edit("rename", "a", name="y"), edit("undo")]
    assert names(*history)[0] == "x"
    assert names(*history, edit("undo"))[0] == "Apple"
    assert names(*history, edit("undo"), edit("rename", "a", name="z"), edit("undo"))[0] == "Apple"


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([edit("rename", "q", name="x")], "no label with the id 'q'"),
        ([edit("rename", "a", name=" ")], "'a' needs a new name"),
        ([edit("merge", "a", into="a")], "into another label, got itself"),
        ([edit("merge", "a", into="q")], "no label with the id 'q'"),
        ([edit("retire", "b"), edit("merge", "a", into="b")], "'b' is retired; merge into a label in use"),
        ([edit("merge", "a", into="b"), edit("merge", "b", into="a")], "'a' is merged into 'b'; merge into"),
        ([edit("retire", "a"), edit("retire", "a")], "'a' is retired already; restore it first"),
        ([edit("restore", "a")], "'a' is in use, so there is nothing to restore"),
        ([edit("add", "a", name="x")], "a label with the id 'a' already"),
        ([edit("add", "e", name="x"), edit("add", "e", name="y")], "a label with the id 'e' already"),
        ([edit("add", "e")], "a new label needs an id and a name"),
        ([edit("add", "e", name="x", examples=({"text": " "},))], "must be texts, got one without any"),
        ([edit("undo")], "no change of labels left to undo"),
        ([edit("rename", "a", name="x"), edit("undo"), edit("undo")], "no change of labels left to undo"),
    ],
)
def test_edits_that_cannot_be_are_refused(history: list[LabelEdit], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_history(history, LABELS)
