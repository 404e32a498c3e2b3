"""Labels whose names occur in the text, ranked by how the names occur: finds labels that no training text has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
from pydantic import PositiveInt

from longtail.data.dataset import Split, Texts
from longtail.explain.attribution import Attribution
from longtail.explain.occlusion import both_ways
from longtail.explain.words import TextWords
from longtail.labels.name_matches import SPAN_TEXTS, NameMatches, NameOptions, NameTable
from longtail.labels.name_ranker import NameRanker, count_matches
from longtail.methods.base import METHODS, Method, MethodOptions, ResourceEstimate
from longtail.methods.calibrated import MOST_ASKED, Unseen
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH
from longtail.sparse import sp
from longtail.text.readings import TextReadings
from longtail.topk import top_k_of_rows
from longtail.types import TopK

if TYPE_CHECKING:
    from longtail.methods.keywords import LexicalKeywords

_GROUPS = 10
"""The ranker learns from so many groups of texts, each with the counts of all others."""
_BASE = 220 << 20
"""Memory of Python and its libraries."""
_PER_NAME, _PER_MATCH, _MATCHES = 600, 800, 60
"""Bytes of a name, and of a match that the ranker learns from; and matches of a text."""


class LexicalOptions(MethodOptions):
    """Options of the lexical method."""

    names: NameOptions = NameOptions()
    """How names are looked for."""
    ranker_texts: PositiveInt = 10_000
    """The ranker learns from so many training texts at most; counts of labels and names are those of all."""


@METHODS.register("lexical")
class Lexical(Method):
    """Labels whose preferred or alternative names occur in the text, also those that no training text has.

    For example:

        names = longtail.Vocabulary.of(["1", "2", "3"], {"1": "apple", "2": "stone", "3": "pear"})
        model = longtail.Lexical().fit(["red apples", "a grey stone"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
        model.predict(["pears"], k=1)[0][0].name           "pear", which no training text has
    """

    name = "lexical"
    options_class = LexicalOptions
    lists_come_from = "names of labels that occur in texts"
    text_options = ("names",)
    sees_all_labels = True

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[LexicalKeywords]) -> None: ...

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.table_ = NameTable.of(split.vocabulary, self.options.names)
        counts = run.stages.arrays("counts", lambda: count_matches(self.table_, split, run))[0]
        drawn = np.random.default_rng(self.options.seed).permutation(len(split))[: self.options.ranker_texts]
        with run.progress.step("ranker"):
            groups = (split.take(np.sort(rows)) for rows in np.array_split(drawn, min(_GROUPS, len(split))))
            matched = ((self.table_.match(group.texts), group.labels) for group in groups)
            self.ranker_ = NameRanker.fit(self.table_, counts, len(split), matched)

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        spans = range(0, max(len(texts), 1), SPAN_TEXTS)
        return TopK.stack([self._span(texts.table.slice(start, SPAN_TEXTS), k) for start in spans])

    def _unseen(self, split: Split, texts: TextReadings, run: Run) -> Unseen:
        """Return lists of training texts by counts of other texts: the names of a label do not count themselves."""
        rows = np.sort(self._drawn(len(split))[:MOST_ASKED])
        groups = np.array_split(rows, min(_GROUPS, len(rows)))
        lists = []
        for group in groups:
            some = split.take(group)
            matches = self.table_.match(some.texts)
            ranker = self.ranker_.without(matches, some.labels, self.table_)
            probabilities = ranker.probabilities(matches, self.table_)
            lists.append(top_k_of_rows(matches.indptr, matches.labels, probabilities, LIST_LENGTH))
        return Unseen(rows, TopK.stack(lists))

    def _span(self, texts: pa.Table, k: int) -> TopK:
        matches = self.table_.match(texts)
        return top_k_of_rows(matches.indptr, matches.labels, self.ranker_.probabilities(matches, self.table_), k)

    def matches(self, texts: Split | Texts) -> NameMatches:
        """Return the labels whose names occur in each text, with facts about the matches and their probabilities."""
        self._check_fitted()
        matches = self.table_.match(TextReadings.of(texts).table)
        return replace(matches, probabilities=self.ranker_.probabilities(matches, self.table_))

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        """Return vectors of length 1 over all names: those that the text has, rare ones counting most."""
        matches = self.table_.match(texts.table)
        rarity = np.log((self.ranker_.n_texts + 1) / (self.ranker_.counts["names"] + 0.5))
        shape = (len(texts), self.table_.n_names)
        vectors = sp.csr_matrix((np.ones(len(matches.names)), (matches.texts(), matches.names)), shape=shape)
        vectors.data[:] = rarity[vectors.indices]  # a name of several labels is there once
        lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
        return sp.csr_matrix(sp.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ vectors, dtype=np.float32)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        groups = self.table_.words_of_names(self.vocabulary_, label, texts.table, words.forms)
        weights = both_ways(words, groups, label, len(self.vocabulary_), lambda some, n: self._top_k(some, n, run))
        return Attribution("occlusion", weights, names=self.table_.names_in(self.vocabulary_, label, texts.table))

    def _save(self, writer: FolderWriter) -> None:
        self.table_.save(writer, "names")
        writer.arrays("ranker", self.ranker_.arrays())

    def _open(self, folder: Folder) -> None:
        self.table_ = NameTable.load(folder, "names", self.options.names, len(self.vocabulary_))
        self.ranker_ = NameRanker.load(folder, "ranker", self.table_)

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` will take; with `measure` also how long, from training on a sample."""
        n, labels = len(split), split.vocabulary if split.official is None else split.official
        n_names = len(labels) + sum(map(len, labels.table["alternatives"].to_pylist()))
        names = _PER_NAME * n_names * len(self.options.names.languages)
        learned = _PER_MATCH * _MATCHES * min(n, self.options.ranker_texts)
        memory = {"texts": split.texts.nbytes, "names": 4 * names, "matches": learned, "programs": _BASE}
        seconds = self._seconds_by_sample(split, threads) if measure else None
        how = "ranker_texts or names.languages"
        return ResourceEstimate(sum(memory.values()), names, how, seconds=seconds, parts=tuple(memory.items()))

    def describe(self) -> dict[str, Any]:
        """Return the number of different names."""
        return {"n_names": self.table_.n_names}
