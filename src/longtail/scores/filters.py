"""Suggest only some labels: those that are allowed and not denied, by id, by name, or as branches of the hierarchy.

An entry is looked up as a label id first, then as a label name. `X/*` is the whole branch of X: X itself, where it is a
label, and everything below it.

Lists stay as long as they can be: while a text has too few allowed labels and the method has more, a longer list is
asked for.

    vocabulary (n_labels), allow, deny  ->  allowed (n_labels,)
    lists of the method, allowed        ->  TopK (n_texts, k) of allowed labels
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, did_you_mean
from longtail.labels.model_labels import ModelLabels
from longtail.scores.step import STEPS, ScoreStep
from longtail.types import NO_LABEL, TopK

BRANCH = "/*"
_GROWTH = 8
_MOST_COMPARED = 20_000
"""Names that a misspelt one is compared with; of a larger vocabulary only those with the same first letter."""


class Ask(Protocol):
    """Asks a method for ranked lists."""

    def __call__(self, n: int, rows: NDArray[np.int64] | None = None) -> TopK:
        """Return the best `n` labels of the given texts (ascending numbers), or of all."""


@STEPS.register("filter")
class Filter(ScoreStep):
    """Leaves only some labels in the lists."""

    kind: Literal["filter"] = "filter"
    allow: tuple[str, ...] | None = None
    """Labels that may be suggested, by id or name, or branches (`X/*`); by default all."""
    deny: tuple[str, ...] = ()
    """Labels that may not."""

    def allowed(self, labels: ModelLabels) -> NDArray[np.bool_]:
        """Return which labels (n_labels,) pass; raise if the method can score none of them."""
        vocabulary = labels.vocabulary
        passes = np.ones(len(vocabulary), bool) if self.allow is None else _matches(vocabulary, self.allow, "allow")
        if self.deny:
            passes &= ~_matches(vocabulary, self.deny, "deny")
        if not passes[labels.scored].any():
            asked = [f"`{name}`" for name in ("allow", "deny") if getattr(self, name)] or ["`allow`"]
            raise ConfigError(
                f"{' and '.join(asked)} must leave one of the {len(labels.scored):,} labels that the model can score, "
                "got none; labels without training texts are not among them"
            )
        return passes


def lists_of_allowed(
    ask: Ask, n: int, allowed: NDArray[np.bool_], scored: NDArray[np.int32], *, scores_at_once: int = 1 << 24
) -> TopK:
    """Return the best `n` allowed labels of each text.

    `ask` gives the method's lists; it is asked for longer ones, of the texts that still need them, until each text has
    `n` allowed labels or all that there are, or the method has no more. `scored` are the labels that the method can
    score, `scores_at_once` bounds the size of the longer lists.
    """
    n_allowed, most = int(np.count_nonzero(allowed[scored])), len(scored)
    length = max(n, min(most, n + min(most - n_allowed, 3 * n + 100)))
    lists = ask(length)
    best = keep_allowed(lists, allowed, n)
    wanted = min(n, n_allowed)
    rows = np.flatnonzero(_needs_more(lists, best, wanted))
    while len(rows) and length < most:
        length = min(length * _GROWTH, most)
        step = max(1, scores_at_once // length)
        unfinished = []
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            lists = ask(length, block)
            longer = keep_allowed(lists, allowed, n)
            best.labels[block], best.scores[block] = longer.labels, longer.scores
            unfinished.append(block[_needs_more(lists, longer, wanted)])
        rows = np.concatenate(unfinished)
    return best


def keep_allowed(lists: TopK, allowed: NDArray[np.bool_], k: int) -> TopK:
    """Return the first `k` allowed labels of each list; short rows end in NO_LABEL."""
    passes = (lists.labels != NO_LABEL) & allowed[lists.labels]  # (n_texts, n)
    place = np.cumsum(passes, axis=1) - 1
    passes &= place < k
    text, column = np.nonzero(passes)
    kept = TopK.empty(len(lists), k)
    kept.labels[text, place[passes]] = lists.labels[text, column]
    kept.scores[text, place[passes]] = lists.scores[text, column]
    return kept


def label_number(vocabulary: Vocabulary, entry: str) -> int:
    """Return the number of the label with an id or, failing that, a name; raise if there is none, or several."""
    named = np.flatnonzero(_look_up(vocabulary, [entry])[0])
    if not len(named):
        raise ConfigError(_unknown(vocabulary, entry))
    if len(named) > 1:
        ids = ", ".join(vocabulary.table["id"].take(pa.array(named[:3])).to_pylist())
        raise ConfigError(f"a label must be named by its id where several are called '{entry}', such as {ids}")
    return int(named[0])


def _needs_more(lists: TopK, kept: TopK, wanted: int) -> NDArray[np.bool_]:
    """Return which texts have fewer than `wanted` labels although the method may have more."""
    short = np.count_nonzero(kept.labels != NO_LABEL, axis=1) < wanted
    return np.asarray(short & (lists.labels[:, -1] != NO_LABEL))


def _matches(vocabulary: Vocabulary, entries: Iterable[str], option: str) -> NDArray[np.bool_]:
    """Return which labels (n_labels,) the entries of `allow` or `deny` name, alone or as part of a branch."""
    labels, others = _look_up(vocabulary, entries)
    branches = [entry.removesuffix(BRANCH) for entry in others if entry.endswith(BRANCH)]
    roots, parents = _look_up(vocabulary, branches)
    by_name = {name: parent for parent, name in vocabulary.parent_names.items()}
    unknown = [entry for entry in others if not entry.endswith(BRANCH)]
    unknown += [parent + BRANCH for parent in parents if not {parent} & {*by_name, *by_name.values()}]
    if unknown:
        raise ConfigError(f"`{option}`: {_unknown(vocabulary, unknown[0])}")
    if not branches:
        return labels
    return labels | _with_labels_below(vocabulary, roots, {by_name.get(parent, parent) for parent in parents})


def _look_up(vocabulary: Vocabulary, entries: Iterable[str]) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which labels (n_labels,) the entries name, by id or else by name, and the entries that name none."""
    labels, left = np.zeros(len(vocabulary), bool), list(dict.fromkeys(entries))
    for column in (vocabulary.table["id"], vocabulary.table["name"]):
        if not left:
            break
        named = _is_in(column, left)
        known = set(column.filter(pa.array(named)).to_pylist())
        labels, left = labels | named, [entry for entry in left if entry not in known]
    return labels, left


def _with_labels_below(vocabulary: Vocabulary, roots: NDArray[np.bool_], parents: set[str]) -> NDArray[np.bool_]:
    """Return `roots` (n_labels,) and all labels below them or below `parents`, which are ids that are no labels."""
    groups = vocabulary.table["parents"].combine_chunks()
    child = np.repeat(np.arange(len(vocabulary)), np.asarray(pc.list_value_length(groups)))
    parent_of_child = pc.list_flatten(groups)  # one entry per pair of child and parent
    inside, level = roots.copy(), parents | _ids_of(vocabulary, roots)
    while level:
        below = np.zeros(len(vocabulary), bool)
        below[child[_is_in(parent_of_child, level)]] = True
        below &= ~inside  # a hierarchy may have cycles
        inside |= below
        level = _ids_of(vocabulary, below)
    return inside


def _ids_of(vocabulary: Vocabulary, labels: NDArray[np.bool_]) -> set[str]:
    return set(vocabulary.table["id"].filter(pa.array(labels)).to_pylist())


def _is_in(column: pa.ChunkedArray | pa.Array, values: Iterable[str]) -> NDArray[np.bool_]:
    """Return which strings of a column are among `values`, without making Python strings of them."""
    return np.asarray(pc.is_in(column, value_set=pa.array(list(values), pa.string())), bool)


def _unknown(vocabulary: Vocabulary, entry: str) -> str:
    """Return what is wrong with an entry that names nothing."""
    parents, word = vocabulary.parent_names, entry.removesuffix(BRANCH)
    if entry == word and (entry in parents or entry in parents.values()):
        return f"'{entry}' is not a label but has labels below it; write '{entry}{BRANCH}' for the whole branch"
    ids, names = vocabulary.table["id"], vocabulary.table["name"]
    if len(vocabulary) > _MOST_COMPARED:
        ids, names = (column.filter(pc.starts_with(column, word[:1])) for column in (ids, names))
    known = [*names.to_pylist(), *ids.to_pylist(), *(parents.values() if entry != word else ())]
    return f"the model has no label '{word}'{did_you_mean(word, known)}"
