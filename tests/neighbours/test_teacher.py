"""The teacher: whose labels a text is shown, and whose never (docs/methods/treaderxml.md#teacher, #invariant-1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Split
from longtail.neighbours.scope import Scope
from longtail.neighbours.teacher import Teacher, TeacherOptions
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages

ONE = Run(LocalEngine(1))
TEXTS = ["red apple", "red apple pie", "Red  apple", "grey stone", "grey stone wall", "red stone", "nothing"]
LABELS = [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], []]
KINDS: list[dict[str, Any]] = [
    {"points": {"kind": "tfidf", "features": {"blocks": [{"column": "text", "words": [1, 1], "min_df": 1}]}}},
    {"points": {"kind": "words", "words": {"min_df": 1}, "vectors": {"width": 30, "source": None}}},
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=["tfidf", "words"])


def split() -> Split:
    return Split.of(TEXTS, LABELS)


def fit(kind: dict[str, Any], kept: list[int] | None = None, run: Run = ONE, k: int = 2) -> tuple[Teacher, Scope]:
    rows = np.arange(len(TEXTS)) if kept is None else np.array(kept)
    options = TeacherOptions.of({**kind, "n_neighbours": k, "parents": "none"})
    return Teacher.fit(split(), options, rows, run=run)


def shown(scope: Scope, text: int) -> set[str]:
    return {"abcdef"[label] for label in scope[text].tolist()}


@each_kind
def test_a_training_text_is_shown_neither_its_own_labels_nor_those_of_a_copy(kind: dict[str, Any]) -> None:
    for k in (1, 3, 7):
        _, scope = fit(kind, k=k)
        copies = [{0, 2}, {1}, {0, 2}, {3}, {4}, {5}, {6}]
        for text, same in enumerate(copies):
            assert not shown(scope, text) & {label for other in same for label in LABELS[other]}
    assert shown(fit(kind, k=1)[1], 0) == {"b"}


def test_texts_that_share_no_term_are_no_neighbours() -> None:
    teacher, scope = fit(KINDS[0], k=7)
    assert [shown(scope, text) for text in (0, 3, 6)] == [{"b", "f"}, {"e", "f"}, set()]
    assert not len(teacher.scope(Split.of(["unheard"], [[]]).texts, None, ONE)[0])


@each_kind
def test_held_out_texts_are_nobodys_neighbours_until_training_is_over(kind: dict[str, Any]) -> None:
    teacher, scope = fit(kind, [0, 3, 4, 5, 6], k=7)
    assert len(scope) == len(TEXTS)
    for text in range(len(TEXTS)):
        assert not shown(scope, text) & {"b", "c"}
    assert shown(scope, 1) >= {"a", "f"}  # they have neighbours themselves
    after = teacher.scope(split().texts, None, ONE)
    assert shown(after, 0) >= {"b", "c"}


@each_kind
def test_other_texts_find_all_of_the_pool_also_a_copy_of_themselves(kind: dict[str, Any]) -> None:
    teacher, _ = fit(kind, k=1)
    found = teacher.scope(Split.of(["grey stone", "pie red apple", ""], [[]] * 3).texts, None, ONE)
    assert [shown(found, text) for text in range(2)] == [{"d"}, {"b"}]
    assert len(teacher.scope(split().texts.slice(0, 0), None, ONE)) == 0


@each_kind
def test_scopes_are_the_same_in_pieces_after_a_kill_and_from_a_folder(kind: dict[str, Any], tmp_path: Path) -> None:
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    teacher, scope = fit(kind, [0, 1, 3, 5], Run(LocalEngine(1), stages=stages))
    _, again = fit(kind, [0, 1, 3, 5], Run(LocalEngine(1), stages=stages))
    assert np.array_equal(scope.labels, again.labels)
    whole = teacher.scope(split().texts, None, ONE)
    with write_folder(tmp_path / "m", "test") as writer:
        teacher.save(writer)
    opened = Teacher.load(Folder(tmp_path / "m", "test"), teacher.options, split().vocabulary)
    in_pieces = Teacher(opened.options, replace(opened.pool, at_once=3), opened.hierarchy)
    found = in_pieces.scope(split().texts, None, ONE)
    assert np.array_equal(whole.ptr, found.ptr)
    assert np.array_equal(whole.labels, found.labels)
    assert found.names == whole.names


def test_votes_are_those_of_the_neighbours_alone_and_can_be_left_out() -> None:
    def votes(share: float, k: int = 2) -> Scope:
        options = TeacherOptions.of({**KINDS[0], "n_neighbours": k, "parents": "none", "votes": share})
        return Teacher.fit(split(), options, np.arange(len(TEXTS)), run=ONE)[1]

    scope = votes(2.0)
    assert votes(0.0).votes is None
    dense = scope.votes.toarray()
    for text in range(len(TEXTS)):
        assert {"abcdef"[label] for label in np.flatnonzero(dense[text])} == shown(scope, text)
        assert not shown(scope, text) & set(LABELS[text])
    only = votes(2.0, k=1).votes.toarray()
    assert only.max() == pytest.approx(2 * np.log(21))
    assert votes(4.0, k=1).votes.toarray() == pytest.approx(2 * only)


def test_a_scope_has_at_most_so_many_labels_the_likeliest() -> None:
    lists = TeacherOptions.of({**KINDS[0], "n_neighbours": 7, "parents": "none", "max_labels": 0})
    whole = Teacher.fit(split(), lists, np.arange(len(TEXTS)), run=ONE)[1]
    one = Teacher.fit(split(), lists.model_copy(update={"max_labels": 1}), np.arange(len(TEXTS)), run=ONE)[1]
    assert max(len(whole[text]) for text in range(len(TEXTS))) > 1
    for text in range(len(TEXTS)):
        assert one[text].tolist() == whole[text][:1].tolist()
