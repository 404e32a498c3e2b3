"""Calibrate a method: lists of texts that it has not seen, and the score step that is fitted to them.

    method, its training texts  ->  Unseen: some of the texts, their lists  ->  a chain that ends in `Calibrate`

There are three ways to lists of unseen texts. By default, a second model is trained on a part of the texts and asked
about others. Methods that take long to train keep a few texts out of training (`keeps_texts_out`), unless they do so
anyway to choose weights (`_validation_rows`). Others know better (`_unseen`): neighbours are found without the text
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.labels.model_labels import ModelLabels
from longtail.run.log import LOG
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH, Calibrate, fit_calibration
from longtail.scores.chain import Chain
from longtail.scores.step import ScoreStep
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL, LabelMatrix, TopK

_FEWEST = 50
"""With fewer unseen texts nothing is calibrated."""
_SHARE, _FEWEST_TRAINED = 0.25, 2000
"""The second model is trained on this share of the texts, or on so many if there are."""
MOST_ASKED = 4000
"""A calibration is fitted to at most so many texts."""
_KEPT_OUT, _MOST_KEPT_OUT = 0.05, 2000
"""Share of the texts that are kept out of training, and most of them."""
_MOST_NEW = 0.5
"""Where more of the labels than this occur once, an estimate of how many are new means little."""
_LONGER = 1.3
"""How much longer training takes with a second model, at most."""
_DRAWN = 3
"""Second number of the seed by which texts are drawn."""
_NONE: NDArray[np.int64] = np.empty(0, np.int64)


class Unseen(NamedTuple):
    """Lists of texts by a model that has not seen them."""

    rows: NDArray[np.int64]  # (n,) of the training texts
    lists: TopK  # (n, up to `LIST_LENGTH`) as `_top_k` gives them
    n_assigned: float | None = None
    """How many labels the texts would have if a model of a part of the texts missed no more of them than the whole one;
    None if the lists are as good as those of the whole model."""


class Calibrated:
    """Mixin of a method whose scores are calibrated as it is trained."""

    keeps_texts_out: ClassVar[bool] = False
    """Whether some texts are kept out of training for the calibration, because a second training would take long."""

    options: Any
    chain_: Chain

    if TYPE_CHECKING:  # what the method itself has
        from_options: Callable[[Mapping[str, Any]], Self]

        def _fit_split(self, split: Split, texts: TextReadings, run: Run) -> Self: ...
        def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK: ...
        def _score_steps(self) -> tuple[ScoreStep, ...]: ...
        def _in_vocabulary(self, lists: TopK) -> TopK: ...
        def _learn_new_labels(
            self, split: Split, texts: TextReadings, chain: Chain, run: Run
        ) -> tuple[ScoreStep, ...]: ...

    @property
    def calibration(self) -> Calibrate | None:
        """The step that makes scores probabilities; None if the model is not calibrated."""
        return self.chain_.calibration

    def calibrate(self, lists: TopK, labels: LabelMatrix) -> None:
        """Calibrate a trained model by lists of texts that it has not seen, as `top_k` gives them, and their labels."""
        self.chain_ = Chain((*self.chain_.steps, fit_calibration(lists, labels)))

    def _validation_rows(self, n_texts: int) -> NDArray[np.int64]:
        """Return which of the texts of `_fit` it does not learn from, but chooses weights by."""
        return _NONE

    def _kept_out(self, split: Split) -> NDArray[np.int64]:
        """Return the texts that must be kept out of training, ascending; they are for the calibration."""
        n_texts = len(split)
        n_kept_out = min(int(n_texts * _KEPT_OUT), _MOST_KEPT_OUT)
        if not (self.options.calibrate and self.keeps_texts_out) or n_kept_out < _FEWEST:
            return _NONE
        if len(self._validation_rows(n_texts)) >= _FEWEST:
            return _NONE
        rows = np.sort(self._drawn(n_texts)[:n_kept_out])
        return rows if split.labels.take(np.delete(np.arange(n_texts), rows)).n_seen() > 1 else _NONE

    def _unseen(self, split: Split, texts: TextReadings, run: Run) -> Unseen | None:
        """Return lists of training texts by a model that has not seen them, or None if there are too few texts.

        The arguments are those of `_fit`, which has trained this method.
        """
        rows = self._validation_rows(len(split))
        if self.keeps_texts_out:
            return Unseen(rows, self._top_k(texts.take(rows), LIST_LENGTH, run)) if len(rows) >= _FEWEST else None
        n_texts = len(split)
        n_trained = max(int(n_texts * _SHARE), min(_FEWEST_TRAINED, int(0.9 * n_texts)))
        drawn = self._drawn(n_texts)
        train, asked = np.sort(drawn[:n_trained]), np.sort(drawn[n_trained : n_trained + MOST_ASKED])
        if len(asked) < _FEWEST or split.labels.take(train).n_seen() < 2:
            return None
        within = run.within("calibration")

        def build() -> dict[str, NDArray[Any]]:
            some, share = split.take(train), n_trained / n_texts
            return dict(vars(self._ask_second_model(some, texts.take(train), texts.take(asked), share, within)))

        lists = TopK(**within.stages.arrays("lists", build)[0])
        return Unseen(asked, lists, _n_assigned(split.labels, train, asked))

    def _ask_second_model(self, split: Split, texts: TextReadings, asked: TextReadings, share: float, run: Run) -> TopK:
        """Train a second model on a split, a share of what `_fit` was given, and return its lists of other texts."""
        model = self._uncalibrated()._fit_split(split, texts, run)
        return model._in_vocabulary(model._top_k(asked, LIST_LENGTH, run))

    def _calibrated_chain(self, whole: Split, texts: TextReadings, seen: Split, labels: ModelLabels, run: Run) -> Chain:
        """Return the score steps of this method, now trained, with the calibration as the last one.

        Args:
            whole: All training texts.
            texts: The same texts, and what has been made of them.
            seen: What `_fit` was given.
            labels: Those of the model.
            run: How the work is done.
        """
        chain = Chain(self._score_steps())
        if not self.options.calibrate:
            return chain
        if chain.calibration is not None:
            return Chain((*chain.steps, *self._learn_new_labels(whole, texts, chain, run)))
        rows = self._kept_out(whole)
        if len(rows):
            unseen: Unseen | None = Unseen(rows, self._top_k(texts.take(rows), LIST_LENGTH, run))
        else:
            unseen = self._unseen(seen, texts, run)
        if unseen is None or len(unseen.rows) < _FEWEST or not (unseen.lists.labels != NO_LABEL).any():
            LOG.info("scores are not calibrated: that needs more texts")
            return chain
        truth = replace(whole.labels.take(unseen.rows), n_labels=len(labels.vocabulary))
        length = chain.n_candidates(LIST_LENGTH)
        lists = chain.apply(self._in_vocabulary(unseen.lists.first(length)), LIST_LENGTH, labels)
        chain = Chain((*chain.steps, fit_calibration(lists, truth, unseen.n_assigned)))
        return Chain((*chain.steps, *self._learn_new_labels(whole, texts, chain, run)))

    def _uncalibrated(self) -> Self:
        """Return an untrained method of the same options, whose scores will not be calibrated."""
        return self.from_options({**self.options.plain(), "calibrate": False})

    def _seconds_of_training(self, uncalibrated: float) -> float:
        """Return about how long training takes, from the time that it takes without calibration."""
        longer = self.options.calibrate and not self.keeps_texts_out
        return uncalibrated * (_LONGER if longer else 1)

    def _drawn(self, n_texts: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.options.seed, _DRAWN]).permutation(n_texts)


def _n_assigned(labels: LabelMatrix, train: NDArray[np.int64], asked: NDArray[np.int64]) -> float:
    """Return how many labels the asked texts would have if only those were new that are new to the whole model.

    Labels that none of the texts `train` has are left out. How many the whole model will not know is the share of
    labels that it has met once (Good and Turing's estimate).
    """
    counts = labels.texts_per_label()
    n_known = int((labels.take(train).texts_per_label() > 0)[labels.take(asked).indices].sum())
    share_of_new = (counts == 1).sum() / max(counts.sum(), 1)
    return float(n_known / (1 - min(share_of_new, _MOST_NEW)))
