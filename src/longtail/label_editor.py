"""Change the labels of a saved model: add, rename, merge, retire and restore, one by one or as a new release has them.

    LabelEditor("model").rename("chat", "cat")   ->   the folder's manifest is replaced in one step; no training

Only the manifest is written, so an edit takes no longer than opening the model, and a kill leaves the labels as they
were or as they are to be. Programs that have opened the model go on with the labels that they opened.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from longtail.data.dataset import TEXT, Split
from longtail.data.skos import Release
from longtail.errors import ConfigError, did_you_mean
from longtail.labels.edits import Action, LabelEdit, in_force
from longtail.methods import load_model
from longtail.methods.base import MODEL, Method
from longtail.persist import amend_manifest, revision_of
from longtail.run.run import Run
from longtail.types import NO_LABEL

AT = 5
"""Labels of a list that `Harm` looks at."""


@dataclass(frozen=True)
class Harm:
    """What new labels do to the first labels of texts whose labels are known."""

    n_texts: int
    n_right_before: int
    """Right labels among the first five of all texts."""
    n_displaced: int
    """How many of these are no longer among them."""
    n_new: int
    """How often new labels are among them."""


@dataclass(frozen=True)
class SyncReport:
    """What a release of a vocabulary changed."""

    edits: tuple[LabelEdit, ...]
    missing: tuple[str, ...]
    """Labels in use that the release does not have; they stay as they are."""

    def count(self, action: Action) -> int:
        """Return how many labels were added, renamed, merged or retired."""
        return sum(edit.action == action for edit in self.edits)


class LabelEditor:
    """Edits the labels of a saved model; each change is written at once.

    For example:

        editor = longtail.LabelEditor("model", person="Anna")
        editor.add("Heat pumps", examples=["a pump that heats houses", "heating by pumps"])
        editor.merge("cats", "cat")
        editor.undo()
    """

    def __init__(self, path: str | Path, person: str = "") -> None:
        """Open a model; `person` is noted with each change."""
        self.path, self.person = Path(path), person
        self._revision = revision_of(path)  # before it is opened: a model that comes after that is not changed
        self.model: Method = load_model(path)

    @property
    def history(self) -> tuple[LabelEdit, ...]:
        """All changes since the model was trained, the first one first; undone ones are followed by their `undo`."""
        return self.model.label_history

    def add(
        self,
        name: str,
        examples: Iterable[str | Mapping[str, str]] = (),
        *,
        label_id: str = "",
        parents: Sequence[str] = (),
        alternatives: Sequence[str] = (),
    ) -> LabelEdit:
        """Add a label that the model was not trained with, and return what was written.

        Args:
            name: The name of the label.
            examples: Texts that have it, as strings or by field; five are enough. A label without examples is suggested
                where texts have its names, if the model learned from names of labels what that says; else it is known
                and can be chosen by hand.
            label_id: Its id; by default made from its name.
            parents: Ids or names of broader labels.
            alternatives: Other names.
        """
        texts = tuple({TEXT: text} if isinstance(text, str) else dict(text) for text in examples)
        parents = tuple(self._find(parent) for parent in parents)
        label_id = label_id or id_of_name(name)
        return self._make("add", label_id, name=name, parents=parents, alternatives=tuple(alternatives), examples=texts)

    def rename(self, label: str, name: str) -> LabelEdit:
        """Give a label (by id or name) another name, and return what was written."""
        return self._make("rename", self._find(label), name=name)

    def merge(self, label: str, into: str) -> LabelEdit:
        """Suggest another label wherever this one would be suggested, and return what was written."""
        return self._make("merge", self._find(label), into=self._find(into))

    def retire(self, label: str) -> LabelEdit:
        """No longer suggest a label, and return what was written."""
        return self._make("retire", self._find(label))

    def restore(self, label: str) -> LabelEdit:
        """Suggest a label again that was retired or merged, and return what was written."""
        return self._make("restore", self._find(label))

    def undo(self) -> LabelEdit:
        """Undo the last change that is in force, and return it."""
        undone = in_force(self.history)
        self._make("undo", "")
        return undone[-1]

    def sync(self, release: Release) -> SyncReport:
        """Change the labels to those of a release: in one step, or not at all if one of the changes is refused."""
        edits = tuple(edits_for_release(release, self.model))
        known = release.vocabulary.position
        state = self.model.chain_.edited.state
        missing = tuple(label for label in self.model.vocabulary_.ids if label not in known and not state(label))
        self._write(*(self._signed(edit) for edit in edits))
        return SyncReport(edits, missing)

    def harm(self, validation: Split, run: Run | None = None) -> Harm:
        """Return what the added labels do to the first labels of texts whose labels are known."""
        lists = self.model.top_k(validation, AT, run=run).labels
        n_trained = len(self.model.trained_vocabulary_)
        added = [edit.label for edit in self.model.chain_.edited.added.values()]
        before = self.model.top_k(validation, AT, deny=added, run=run).labels if added else lists
        numbers = np.array([self.model.vocabulary_.position.get(label, -2) for label in validation.vocabulary.ids])
        displaced = right = 0
        for text in range(len(validation)):
            truth = numbers[validation.labels[text]]
            hits = np.intersect1d(before[text], truth)
            right += len(hits)
            displaced += len(np.setdiff1d(hits, lists[text]))
        return Harm(
            len(validation), right, displaced, int(np.count_nonzero((lists >= n_trained) & (lists != NO_LABEL)))
        )

    def _find(self, label: str) -> str:
        """Return the id of a label, given by id or by name."""
        vocabulary = self.model.vocabulary_
        if label in vocabulary.position:
            return label
        named = [vocabulary.ids[at] for at, name in enumerate(vocabulary.names) if name == label]
        if len(named) == 1:
            return named[0]
        if named:
            raise ConfigError(f"{len(named)} labels are called '{label}'; give the id: {', '.join(named[:5])}")
        raise ConfigError(f"the model has no label '{label}'{did_you_mean(label, vocabulary.names)}")

    def _make(self, action: Action, label: str, **facts: object) -> LabelEdit:
        edit = self._signed(LabelEdit.of({"action": action, "label": label, **facts}))
        self._write(edit)
        return edit

    def _signed(self, edit: LabelEdit) -> LabelEdit:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return edit.model_copy(update={"person": self.person, "time": now})

    def _write(self, *edits: LabelEdit) -> None:
        if not edits:
            return
        self.model.edit_labels(*edits)
        steps = {"score_steps": self.model.chain_.plain()}
        self._revision = amend_manifest(self.path, MODEL, steps, self._revision)


def edits_for_release(release: Release, model: Method) -> Iterable[LabelEdit]:
    """Yield the changes that make the labels of a model those of a release."""
    labels, known, state = release.vocabulary, model.vocabulary_, model.chain_.edited.state
    names = dict(zip(known.ids, known.names, strict=True))
    gone = release.deprecated | set(release.replaced)
    for number, (label, name) in enumerate(zip(labels.ids, labels.names, strict=True)):
        if label in names and name != names[label]:
            yield LabelEdit(action="rename", label=label, name=name)
        elif label not in names and label not in gone:
            parents, alternatives = tuple(labels.parents(number)), tuple(labels.alternatives(number))
            yield LabelEdit(action="add", label=label, name=name, parents=parents, alternatives=alternatives)
    for label in (label for label in known.ids if label in gone and not state(label)):
        into = _end_of(label, release.replaced)
        usable = into != label and into not in release.deprecated and (into in labels.position) and not state(into)
        yield LabelEdit(action="merge", label=label, into=into) if usable else LabelEdit(action="retire", label=label)


def _end_of(label: str, replaced: Mapping[str, str]) -> str:
    """Return the label that replaces another one, over any number of releases; the label itself in a circle."""
    seen = {label}
    at = label
    while at in replaced:
        at = replaced[at]
        if at in seen:
            return label
        seen.add(at)
    return at


def id_of_name(name: str) -> str:
    """Return an id made from a name: `Heat pumps` becomes `heat-pumps`."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "-".join("".join(letter if letter.isalnum() else " " for letter in plain).split())
