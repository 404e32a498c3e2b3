"""Match the labels of texts with a vocabulary: by id, else by preferred name, else by alternative name.

    labels as the data write them, Vocabulary  ->  Match: the id of each label, and which labels are not there

Names are those of the vocabulary's language. They are compared as they are written, then without regard to case and
white space. A name of several concepts matches none of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.examination import Finding, percent
from longtail.data.vocabulary import Vocabulary
from longtail.notebook import shorten
from longtail.run.log import LOG

_N_EXAMPLES = 5
_N_LOGGED = 3
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Match:
    """What labels stand for in a vocabulary."""

    n_labels: int
    by_name: dict[str, str]
    """Labels that are given as names, and the ids of their concepts."""
    ambiguous: dict[str, list[str]]
    """Labels that are names of several concepts, and the ids of these."""
    unknown: list[str]
    """All labels that stand for no concept, the ambiguous ones among them."""
    id_like: str
    """An id of the vocabulary, as an example."""

    def id_of(self, label: str) -> str:
        """Return the id of a label; one that is not in the vocabulary keeps its own."""
        return self.by_name.get(label, label)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the labels."""
        if self.unknown:
            share = f"{len(self.unknown):,} of {self.n_labels:,} labels ({percent(len(self.unknown) / self.n_labels)})"
            message = f"{share} are not in the vocabulary (its ids are like {_quoted(self.id_like)})"
            yield _warning("labels not in the vocabulary", len(self.unknown), message, map(_quoted, self.unknown))
        if self.ambiguous:
            share = f"{len(self.ambiguous):,} of {self.n_labels:,} labels"
            message = f"{share} are names of several concepts and stand for none; use ids"
            examples = (f"{_quoted(label)} ({_few(ids)})" for label, ids in self.ambiguous.items())
            yield _warning("ambiguous labels", len(self.ambiguous), message, examples)

    def log(self) -> None:
        """Log which labels are names, and warn of those that are not in the vocabulary."""
        if self.by_name:
            pairs = _few(f"{_quoted(label)} is {id}" for label, id in self.by_name.items())
            LOG.info(f"{len(self.by_name):,} of {self.n_labels:,} labels are names in the vocabulary: {pairs}")
        for finding in self.findings():
            LOG.warning(f"{finding.message}, e.g. {_few(finding.examples)}")


def match(labels: Iterable[str], vocabulary: Vocabulary) -> Match:
    """Return what `labels` stand for in `vocabulary`."""
    given = list(dict.fromkeys(labels))
    by_name: dict[str, str] = {}
    ambiguous: dict[str, list[str]] = {}
    others = [label for label in given if label not in vocabulary.position]
    rest = others
    kinds: tuple[Callable[[str], str], ...] = (str, folded)
    for column, key in product(("name", "alternatives"), kinds):
        concepts = _concepts(vocabulary, column, key, {key(label) for label in rest}) if rest else {}
        for label in rest:
            ids = concepts.get(key(label), [])
            if len(ids) == 1:
                by_name[label] = ids[0]
            elif ids:
                ambiguous[label] = ids
        rest = [label for label in rest if label not in by_name and label not in ambiguous]
    unknown = [label for label in others if label not in by_name]
    return Match(len(given), by_name, ambiguous, unknown, next(iter(vocabulary.ids), ""))


def ids_in(vocabulary: Vocabulary | None, labels: Iterable[str]) -> dict[str, str]:
    """Return the id of each label, its own where it is not in the vocabulary; what is odd is logged."""
    labels = list(labels)
    if vocabulary is None:
        return {label: label for label in labels}
    matched = match(labels, vocabulary)
    matched.log()
    return {label: matched.id_of(label) for label in labels}


class NamedLabels(NamedTuple):
    """The labels of data as an official vocabulary names them."""

    labels: Vocabulary
    new_id: NDArray[np.int64]  # (n_labels of the data,) their positions in `labels`


def named_by(official: Vocabulary, labels: Vocabulary) -> NamedLabels:
    """Return labels as `official` names them, in their order; if some are names there, with ids in sorted order."""
    id_of = ids_in(official, labels.ids)
    ids = labels.ids if labels.ids == [*id_of.values()] else sorted(set(id_of.values()))
    named = Vocabulary.of(ids).described_by(official, labels)
    log_concepts(official, named)
    return NamedLabels(named, np.fromiter((named.position[id] for id in id_of.values()), np.int64, len(id_of)))


def log_concepts(official: Vocabulary, labels: Vocabulary) -> None:
    """Log what is odd about a vocabulary."""
    for finding in concept_findings(official, labels):
        LOG.info(f"{finding.message}, e.g. {_few(finding.examples)}")


def concept_findings(official: Vocabulary, labels: Vocabulary) -> Iterator[Finding]:
    """Yield what is odd about a vocabulary: concepts that are no label of the data, names of several concepts."""
    idle = official.table["id"].filter(pc.invert(pc.is_in(official.table["id"], labels.table["id"].combine_chunks())))
    if len(idle):
        message = f"{len(idle):,} of {len(official):,} concepts of the vocabulary have no text"
        yield _warning(
            "concepts without texts", len(idle), message, map(official.name_of, idle[:_N_EXAMPLES].to_pylist())
        )
    counts = pc.value_counts(official.table["name"])
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(shared):
        message = f"{len(shared):,} of {len(counts):,} names of the vocabulary belong to more than one concept"
        ids = _concepts(official, "name", str, set(shared[:_N_EXAMPLES].to_pylist()))
        examples = (f"{_quoted(name)} ({_few(concepts)})" for name, concepts in ids.items())
        yield _warning("names of several concepts", len(shared), message, examples)


def folded(name: str) -> str:
    """Return a name without regard to case, white space and kinds of the same character."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _concepts(vocabulary: Vocabulary, column: str, key: Callable[[str], str], wanted: set[str]) -> dict[str, list[str]]:
    """Return the ids of all concepts that have each of the `wanted` names."""
    concepts: dict[str, list[str]] = {}
    for concept, names in zip(vocabulary.ids, vocabulary.table[column].to_pylist(), strict=True):
        for name in {key(name) for name in ([names] if isinstance(names, str) else names)} & wanted:
            concepts.setdefault(name, []).append(concept)
    return concepts


def _warning(kind: str, count: int, message: str, examples: Iterable[str]) -> Finding:
    return Finding(kind, "warning", count, message, tuple(islice(examples, _N_EXAMPLES)))


def _few(examples: Iterable[str]) -> str:
    return ", ".join(islice(examples, _N_LOGGED))


def _quoted(label: str) -> str:
    return f"'{shorten(label, _SHOWN_CHARACTERS)}'"
