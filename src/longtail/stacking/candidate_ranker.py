"""Score the candidates of several members: what is known of labels, and the ranker that uses it.

    lists of texts that no member has seen, their labels  ->  CandidateRanker.fit  ->  ranker, and how to calibrate it
    lists [TopK (n_texts, length), ...], texts            ->  top_k                ->  TopK (n_texts, k)

Nothing that a training text itself contributed is among its features: labels are counted over the texts outside its
fold, and how often a member was right about a label over the other half of the texts. Of labels without training texts
it is told what is usual: most of those that were proposed in vain are never assigned at all, and one that is new would
be told apart from them by nothing but the members' bad luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH, Calibrate, fit_calibration
from longtail.stacking.candidates import Candidates
from longtail.stacking.examples import CandidateExamples
from longtail.stacking.features import (
    N_OF_MEMBER,
    Evidence,
    candidate_features,
    n_features,
    precision_of_labels,
    text_lengths,
)
from longtail.stacking.folds import folds_of
from longtail.stacking.held_out import HeldOut
from longtail.stacking.label_facts import Hierarchy, LabelFacts
from longtail.stacking.ranker import Ranker, RankerOptions, fit_ranker, load_ranker
from longtail.structure import Structure
from longtail.types import LabelMatrix, TopK

_N_TRUSTED = 5
"""How many labels of a member's list count for how often it is right."""
_TIE_BREAK = 1e-3
"""How much the mean logit of the members counts beside the ranker's log odds."""


class Learned(NamedTuple):
    """What is learned from the members' lists of texts that they have not seen."""

    ranker: CandidateRanker
    calibration: Calibrate
    held_out: HeldOut


@dataclass(frozen=True, eq=False)
class CandidateRanker:
    """A trained ranker with what its features are made of."""

    evidence: Evidence
    ranker: Ranker

    @classmethod
    def fit(
        cls,
        lists: Sequence[TopK],
        split: Split,
        rows: NDArray[np.int64],
        folds: NDArray[np.int64],
        options: RankerOptions,
        *,
        seed: int,
        run: Run,
    ) -> Learned:
        """Train on the members' lists of texts `rows` of a split; return the ranker, and the lists it has of them.

        Each member must have been trained without the fold of the text; `folds` (n_texts,) are those of the split.
        """
        hierarchy, labels = Hierarchy.of(split.vocabulary), split.labels.take(rows)
        half = folds_of(split.take(rows), 2, seed + 1)
        facts = {fold: LabelFacts.of(split.labels.take(folds != fold)) for fold in np.unique(folds[rows]).tolist()}
        lengths = text_lengths(split.take(rows).texts)

        def examples_of(one: int) -> Iterator[tuple[NDArray[np.int64], Candidates, CandidateExamples]]:
            """Yield the texts of a half, fold by fold, with their candidates."""
            for fold, of_labels in facts.items():
                texts = np.flatnonzero((half == one) & (folds[rows] == fold))
                here = [_rows(member, texts) for member in lists]
                candidates = Candidates.of(here, split.labels.n_labels)
                precision = _precision(lists, labels, np.flatnonzero(half != one), of_labels)
                evidence = Evidence(of_labels, hierarchy, precision)
                features = candidate_features(candidates, here, lengths[texts], evidence)
                right = candidates.are_labels_of(labels.take(texts))
                yield texts, candidates, CandidateExamples(features, right, np.diff(candidates.indptr))

        halves = [list(examples_of(one)) for one in (0, 1)]
        examples = [CandidateExamples.joined([in_fold for *_, in_fold in groups]) for groups in halves]
        unseen, order = [], []
        for one, groups in enumerate(halves):
            ranker = fit_ranker(examples[1 - one], options, seed=seed, run=run)
            for texts, candidates, in_fold in groups:
                scores = _probabilities(ranker, in_fold.features, len(lists), run)
                unseen.append(candidates.top_k(scores, LIST_LENGTH))
                order.append(texts)
        in_order = _rows(TopK.stack(unseen), np.argsort(np.concatenate(order)))
        of_labels = LabelFacts.of(split.labels)
        precision = _precision(lists, labels, np.arange(len(rows)), of_labels)
        whole = cls(
            Evidence(of_labels, hierarchy, precision),
            fit_ranker(CandidateExamples.joined(examples), options, seed=seed, run=run),
        )
        return Learned(whole, fit_calibration(in_order, labels), HeldOut.of(rows, in_order, lists, labels))

    def top_k(self, lists: Sequence[TopK], texts: pa.Table, k: int, run: Run) -> TopK:
        """Return the best k of the members' labels for each text."""
        candidates = Candidates.of(lists, len(self.evidence.facts.counts))
        features = candidate_features(candidates, lists, text_lengths(texts), self.evidence)
        return candidates.top_k(_probabilities(self.ranker, features, len(lists), run), k)

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder."""
        self.evidence.facts.save(writer, "facts")
        self.ranker.save(writer, "ranker")
        writer.arrays("precision", {"precision": self.evidence.precision})

    @classmethod
    def load(cls, folder: Folder, options: RankerOptions, vocabulary: Vocabulary, n_members: int) -> CandidateRanker:
        """Open what `save` wrote."""
        facts, hierarchy = LabelFacts.load(folder, "facts", len(vocabulary)), Hierarchy.of(vocabulary)
        stored = Structure(folder.arrays("precision"), f"{folder.path}, precision")
        precision = stored.finite("precision", np.float32, shape=(n_members, len(vocabulary)))
        n = n_features(n_members, hierarchy is not None)
        return cls(Evidence(facts, hierarchy, precision), load_ranker(folder, "ranker", options, n))


def _precision(
    lists: Sequence[TopK], labels: LabelMatrix, texts: NDArray[np.int64], facts: LabelFacts
) -> NDArray[np.float32]:
    """Return how often each member was right about each label of some texts, (n_members, n_labels)."""
    some, has_texts = labels.take(texts), facts.counts > 0
    return np.stack([precision_of_labels(_rows(one, texts).first(_N_TRUSTED), some, has_texts) for one in lists])


def _rows(lists: TopK, texts: NDArray[np.int64]) -> TopK:
    return TopK(lists.labels[texts], lists.scores[texts])


def _probabilities(ranker: Ranker, features: NDArray[np.float32], n_members: int, run: Run) -> NDArray[np.float32]:
    """Return the scores of candidates on a scale from 0 to 1; what the ranker cannot tell apart, the members do."""
    log_odds = ranker.scores(features, run).astype(np.float64)
    log_odds += _TIE_BREAK * features[:, : n_members * N_OF_MEMBER : N_OF_MEMBER].mean(axis=1)
    return np.asarray(1 / (1 + np.exp(-log_odds)), np.float32)
