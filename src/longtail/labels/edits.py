"""Changes of a model's labels after training: labels are renamed, merged, retired, restored and added.

    history of edits  ->  EditedLabels: new names, which labels are shown as others, which are retired, which are new

A history only grows. An edit that is undone stays in it, with the `undo` behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.options import Options

Action = Literal["add", "rename", "merge", "retire", "restore", "undo"]


class LabelEdit(Options):
    """One change, made by a person or by the release of a vocabulary."""

    action: Action
    """What is done."""
    label: str = ""
    """Id of the label that it is done to; empty for `undo`."""
    name: str = ""
    """`rename`: the new name. `add`: the name."""
    into: str = ""
    """`merge`: id of the label that is suggested instead."""
    parents: tuple[str, ...] = ()
    """`add`: ids of broader labels."""
    alternatives: tuple[str, ...] = ()
    """`add`: other names."""
    examples: tuple[dict[str, str], ...] = ()
    """`add`: texts that have the label, by field."""
    person: str = ""
    """Who made the change."""
    time: str = Field("", max_length=40)
    """When, as ISO 8601 in UTC."""


@dataclass
class EditedLabels:
    """What a history comes to."""

    names: dict[str, str] = field(default_factory=dict)
    """New names by label."""
    merged: dict[str, str] = field(default_factory=dict)
    """For each label that was merged, the label that is suggested instead; that one was not merged itself."""
    retired: set[str] = field(default_factory=set)
    """Labels that are no longer suggested."""
    added: dict[str, LabelEdit] = field(default_factory=dict)
    """Labels that the model was not trained with."""

    @classmethod
    def of(cls, history: Iterable[LabelEdit]) -> EditedLabels:
        """Return what the edits come to that were not undone."""
        labels = cls()
        for edit in in_force(history):
            labels._apply(edit)
        return labels

    def _apply(self, edit: LabelEdit) -> None:
        if edit.action == "add":
            self.added[edit.label] = edit
        elif edit.action == "rename":
            self.names[edit.label] = edit.name
        elif edit.action == "retire":
            self.retired.add(edit.label)
        elif edit.action == "restore":
            self.retired.discard(edit.label)
            self.merged.pop(edit.label, None)
        elif edit.action == "merge":
            self.merged |= {label: edit.into for label, into in self.merged.items() if into == edit.label}
            self.merged[edit.label] = edit.into

    @property
    def n_unused(self) -> int:
        """Number of labels that were retired or merged."""
        return len(self.retired | self.merged.keys())

    def state(self, label: str) -> str:
        """Return `retired`, `merged into ID`, or an empty string for a label in use."""
        if label in self.merged:
            return f"merged into '{self.merged[label]}'"
        return "retired" if label in self.retired else ""

    def vocabulary(self, trained: Vocabulary) -> Vocabulary:
        """Return the labels of the model with new names, and the added ones behind them."""
        if self.added:
            new = list(self.added.values())
            names = {edit.label: edit.name for edit in new}
            parents = {edit.label: edit.parents for edit in new}
            alternatives = {edit.label: edit.alternatives for edit in new}
            trained = trained.followed_by(Vocabulary.of(list(names), names, alternatives, parents))
        return _renamed(trained, self.names) if self.names else trained

    def shown_as(self, vocabulary: Vocabulary) -> NDArray[np.int32]:
        """Return the number of the label that each label is suggested as, (n_labels,): mostly its own."""
        numbers = np.arange(len(vocabulary), dtype=np.int32)
        for label, into in self.merged.items():
            numbers[vocabulary.position[label]] = vocabulary.position[into]
        return numbers

    def in_use(self, vocabulary: Vocabulary) -> NDArray[np.bool_]:
        """Return which labels (n_labels,) were not retired."""
        used = np.ones(len(vocabulary), bool)
        used[[vocabulary.position[label] for label in self.retired]] = False
        return used


def in_force(history: Iterable[LabelEdit]) -> list[LabelEdit]:
    """Return the edits that were not undone, in order; an `undo` takes back the last one that is left."""
    edits: list[LabelEdit] = []
    for edit in history:
        if edit.action != "undo":
            edits.append(edit)
        elif edits:
            edits.pop()
    return edits


def check_history(history: Sequence[LabelEdit], trained: Vocabulary, n_checked: int = 0) -> None:
    """Raise if an edit cannot follow those before it, in a model that was trained with these labels.

    The first `n_checked` edits are known to be right.
    """
    labels = EditedLabels.of(history[:n_checked])
    for at in range(n_checked, len(history)):
        edit = history[at]
        if edit.action == "undo":
            if not in_force(history[:at]):
                raise ConfigError("there is no change of labels left to undo")
            labels = EditedLabels.of(history[: at + 1])
            continue
        _check(edit, labels, trained)
        labels._apply(edit)


def _check(edit: LabelEdit, labels: EditedLabels, trained: Vocabulary) -> None:
    """Raise if an edit cannot be made to these labels."""
    if edit.action == "add":
        _check_new(edit, labels, trained)
        return
    for label in (edit.label, *([edit.into] if edit.action == "merge" else [])):
        if not (label in trained.position or label in labels.added):
            raise ConfigError(f"the model has no label with the id '{label}'")
    state = labels.state(edit.label)
    if edit.action == "restore" and not state:
        raise ConfigError(f"label '{edit.label}' is in use, so there is nothing to restore")
    if edit.action in ("retire", "merge") and state:
        raise ConfigError(f"label '{edit.label}' is {state} already; restore it first")
    if edit.action == "rename" and not edit.name.strip():
        raise ConfigError(f"label '{edit.label}' needs a new name, got none")
    if edit.action == "merge":
        if edit.into == edit.label:
            raise ConfigError(f"label '{edit.label}' must be merged into another label, got itself")
        if labels.state(edit.into):
            raise ConfigError(f"label '{edit.into}' is {labels.state(edit.into)}; merge into a label in use")


def _check_new(edit: LabelEdit, labels: EditedLabels, trained: Vocabulary) -> None:
    if not edit.label.strip() or not edit.name.strip():
        raise ConfigError("a new label needs an id and a name, got none")
    if edit.label in trained.position or edit.label in labels.added:
        raise ConfigError(f"the model has a label with the id '{edit.label}' already; rename or restore that one")
    if not all(any(text.strip() for text in example.values()) for example in edit.examples):
        raise ConfigError(f"the examples of label '{edit.label}' must be texts, got one without any")


def _renamed(vocabulary: Vocabulary, names: Mapping[str, str]) -> Vocabulary:
    """Return the vocabulary with other names for some labels, and for parents that are not labels."""
    every = vocabulary.table["name"].to_pylist()
    for label, name in names.items():
        every[vocabulary.position[label]] = name
    place = vocabulary.table.schema.get_field_index("name")
    return Vocabulary(vocabulary.table.set_column(place, "name", pa.array(every, pa.string())), vocabulary.parent_names)
