"""What every method is: texts and labels in, a model out that suggests labels for new texts.

    method.fit(texts, labels)  ->  method
    method.predict(texts, k)   ->  for each text, up to k suggestions (label id, name, score), best first
    method.top_k(texts, k)     ->  the same as a TopK of label numbers
    method.save(folder)        ->  a folder that `load_model` opens

A method implements `_fit`, `_top_k`, `_save` and `_open`; everything that is the same for all methods is here.

The label space of a model is the whole vocabulary: the labels of the training data in their order, then all others that
are known. Most methods can score only labels with training texts (`scored_labels_`).
"""

from __future__ import annotations

import hashlib
import platform
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import LabelSets, Split, Texts
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.labels.model_labels import ModelLabels, labels_of_model, with_seen_labels
from longtail.methods.added_labels import AddedLabels
from longtail.methods.batches import BatchPrediction
from longtail.methods.calibrated import Calibrated
from longtail.methods.estimator import MODEL as MODEL
from longtail.methods.estimator import Estimator
from longtail.methods.explaining import Explaining
from longtail.methods.exporting import Exporting
from longtail.methods.manifest import check_manifest, opening
from longtail.methods.registry import METHODS as METHODS
from longtail.old_options import current_options
from longtail.options import Options
from longtail.persist import Folder, FolderWriter, write_folder
from longtail.predictions import Predictions
from longtail.predictions import Suggestion as Suggestion
from longtail.propensity import Propensity
from longtail.run.processes import check_processes, is_main_process, n_processes
from longtail.run.progress import SILENT, Progress
from longtail.run.resources import ResourceEstimate as ResourceEstimate
from longtail.run.run import Precision, Run
from longtail.run.stages import FolderStages, claimed
from longtail.scores.call import Answer, Call
from longtail.scores.chain import Chain
from longtail.scores.step import ScoreStep
from longtail.scores.tail import Tail
from longtail.text.readings import TextReadings
from longtail.types import TopK

_SAMPLE = 2000
"""Texts of `_seconds_by_sample`."""


class MethodOptions(Options):
    """Options of every method."""

    seed: int = Field(0, ge=0, lt=2**31)
    """Everything random is drawn from this: the same seed gives the same model, for any number of threads."""
    tail_weight: float = Field(0.0, ge=0, le=10)
    """Moves rare labels up: scores are multiplied by (w / largest w) to this power, where w is how much a right label
    counts in PSP@k. 0 leaves scores as they are, 1 weighs as PSP@k does. Nothing is trained for it."""
    propensity: Propensity = Propensity()
    """Constants of the weight w, here and in the PSP@k and PSnDCG@k of `longtail evaluate`."""
    calibrate: bool = True
    """Make scores probabilities: a score of 0.8 is right 80 % of the time. Takes up to 30 % longer; networks are
    trained without a twentieth of the texts (at most 2,000), which show how often their scores are right."""


class Method(Calibrated, AddedLabels, BatchPrediction, Estimator, Explaining, Exporting, ABC):
    """A trainable tagger.

    For example:

        model = longtail.Linear("linear/fast", n_seeds=2)      a preset, and options over it
        model.fit(texts, label_lists)                          or fit(data.train), or fit(data_frame)
        model.predict(["a text editor"], k=5)                  suggestions, best first
        model.save("folder")                                   longtail.load_model("folder") opens it
    """

    name: ClassVar[str]
    options_class: ClassVar[type[MethodOptions]]
    precisions: ClassVar[tuple[Precision, ...]] = ("auto", "fp32")
    """Numeric precisions that a trained model can predict with."""
    reads_features: ClassVar[bool] = False
    """Whether it learns from sparse features where data come without texts."""
    trains_networks: ClassVar[bool] = False
    """Whether several processes can train it together: it has networks, whose batches they share."""
    _precision: Precision = "auto"

    def fit(
        self,
        texts: Split | Texts,
        labels: LabelSets | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
        work: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Train on a split, a table with columns `text` and `labels`, or texts and their labels, and return the model.

        Labels are lists of label ids, one per text, or an indicator matrix with one column per label.
        The label space is that of the texts and of `vocabulary`, by default the official one that came with the data.
        `run` says how the work is done; `threads`, `progress` and `work` are shorthands for its parts. `work` is a
        folder for finished stages: with `resume`, a run that was killed continues there.
        """
        split = texts if isinstance(texts, Split) else Split.of(texts, labels, vocabulary)
        if vocabulary is not None and isinstance(texts, Split):
            split = split.named_by(vocabulary)
        run = Run.of(run, threads, progress)
        return self._fit_split(split, TextReadings.of(split), run, vocabulary=vocabulary, work=work, resume=resume)

    def _fit_split(
        self,
        split: Split,
        texts: TextReadings,
        run: Run,
        *,
        vocabulary: Vocabulary | None = None,
        work: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Do what `fit` does; `texts` are those of the split, with what has been made of them so far."""
        self._use_params()
        self.check(split)
        check_processes(self.name, self.trains_networks, n_processes())
        kept = np.delete(np.arange(len(split)), self._kept_out(split))
        trained, trained_texts = (split, texts) if len(kept) == len(split) else (split.take(kept), texts.take(kept))
        seen = with_seen_labels(trained)
        space = labels_of_model(trained, vocabulary if vocabulary is not None else split.official)
        key = {"options": self.options.plain(), "data": split.fingerprint, "longtail": version("longtail")}
        if self.sees_all_labels:
            n_labels = len(space.vocabulary)
            seen = replace(trained, labels=replace(trained.labels, n_labels=n_labels), vocabulary=space.vocabulary)
            key["labels"] = hashlib.sha256("\n".join(space.vocabulary.ids).encode()).hexdigest()
        with claimed(work):
            run = run if work is None else replace(run, stages=FolderStages.open(work, key, resume))
            self._fit(seen, trained_texts, run)
            self.scored_labels_ = self._scored_labels(space)
            labels = replace(space, scored=self.scored_labels_)
            self.chain_ = self._calibrated_chain(split, texts, seen, labels, run)
        self.vocabulary_ = self.trained_vocabulary_ = space.vocabulary
        self.train_counts_ = space.train_counts
        self.facts_: dict[str, Any] = {
            "n_texts": len(trained),
            "n_labels": int(np.count_nonzero(space.train_counts)),
            "n_labels_without_texts": int(np.count_nonzero(space.train_counts == 0)),
            "fingerprint": split.fingerprint,
        }
        return self

    def top_k(
        self,
        texts: Split | Texts | TextReadings,
        k: int = 5,
        *,
        threshold: float | Literal["auto"] | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        tail_weight: float | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        precision: Precision | None = None,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> TopK:
        """Return the best `k` labels of each text (or all), as positions in `vocabulary_`; short rows end in -1.

        `threshold` leaves out labels that score less; `auto` is the best one for micro-F1. `min_precision` and
        `min_recall` give sets of labels, as long as they must be, of which at least so many are right, or which have at
        least so many of a text's labels. The last three need a model whose scores are calibrated.
        `tail_weight` moves rare labels up; by default as much as the model's options say. Only labels of `allow` and
        none of `deny` are suggested: ids, names, or branches of the hierarchy (`science/*`). `precision` is that of
        networks: fp32, as they were trained; bf16; int8 on a CPU; auto. `run` says how the work is done; `threads` and
        `progress` are shorthands for its parts.
        """
        call = Call(k, threshold, min_precision, min_recall, tail_weight, allow=allow, deny=deny)
        return self.answer(texts, call, Run.of(run, threads, progress), precision).lists

    def predict(
        self,
        texts: Split | Texts,
        k: int = 5,
        *,
        threshold: float | Literal["auto"] | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        tail_weight: float | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        precision: Precision | None = None,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> Predictions:
        """Return up to `k` suggestions for each text, best first; the arguments are those of `top_k`.

        Models whose scores are calibrated also give the predicted recall of each list, and a route for each text.
        """
        call = Call(k, threshold, min_precision, min_recall, tail_weight, allow=allow, deny=deny)
        answer = self.answer(texts, call, Run.of(run, threads, progress), precision, with_recall=True)
        recall = None if answer.recall is None else answer.recall.tolist()
        return Predictions(self.suggestions(answer.lists), recall)

    def answer(
        self,
        texts: Split | Texts | TextReadings,
        call: Call,
        run: Run,
        precision: Precision | None = None,
        *,
        with_recall: bool = False,
    ) -> Answer:
        """Return the lists of a call, with their predicted recall if it is asked for and scores are calibrated."""
        self._check_fitted()
        readings = TextReadings.of(texts)
        precision = self.check_precision(precision or (run.precision if run.precision != "auto" else self._precision))
        run = replace(run, precision=precision)

        def ask(n: int, rows: NDArray[np.int64] | None = None) -> TopK:
            return self._in_vocabulary(self._top_k(readings if rows is None else readings.take(rows), n, run))

        new = self._new_scores(readings, run)
        return call.answer(self.chain_, ask, self.labels, new=new, with_recall=with_recall)

    @property
    def precision(self) -> Precision:
        """The precision that networks predict with unless a call asks for another."""
        return self._precision

    @classmethod
    def check_precision(cls, precision: Precision) -> Precision:
        """Return the precision, or raise if the method cannot predict with it."""
        if precision not in cls.precisions:
            known = ", ".join(cls.precisions)
            raise ConfigError(f"precision must be one of {known} for method {cls.name}, got '{precision}'")
        return precision

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, in one step: an older model there is replaced only when this one is complete.

        Of several processes that trained it together, only the main one writes.
        """
        self._check_fitted()
        if not is_main_process():
            return
        with write_folder(path, MODEL) as writer:
            self._write(writer)

    def _write(self, writer: FolderWriter) -> None:
        """Write everything that `open` reads."""
        self._save(writer)
        self._trained_labels().save(writer)
        writer.manifest |= {
            "method": self.name,
            "options": self.options.plain(),
            "score_steps": self.chain_.plain(),
            "data": self.facts_,
            "versions": _versions(),
        }

    @classmethod
    def open(cls, folder: Folder, precision: Precision = "auto") -> Self:
        """Return the model that `save` wrote to a folder."""
        manifest, precision = folder.manifest, cls.check_precision(precision)
        with opening(folder):
            model = cls.from_options(current_options(manifest["options"]))
            model._precision = precision
            check_manifest(manifest)
            model.facts_ = manifest["data"]
            labels = ModelLabels.load(folder, int(model.facts_["n_texts"]))
            model.vocabulary_ = model.trained_vocabulary_ = labels.vocabulary
            model.train_counts_, model.scored_labels_ = labels.train_counts, labels.scored
            steps = manifest.get("score_steps")
            model.chain_ = Chain(model._score_steps()) if steps is None else Chain.of(steps)
            model._open(folder)
            model._apply_label_history(folder)
        return model

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` will take; with `measure` also how long, from a few seconds of training.

        Estimates of parts that are trained one after the other are joined with `ResourceEstimate.then`.
        """
        return ResourceEstimate(0, 0, "")

    def _seconds_by_sample(self, split: Split, threads: int | None) -> float:
        """Return how long training will take, from training on two samples, if its time grows as a line of the texts.

        A text takes at least a quarter of what it took in the larger sample, in case the smaller one was slowed down.
        """
        new, n = self._uncalibrated(), len(split)
        sizes = [
            min(n, _SAMPLE // 4),
            min(n, _SAMPLE // 4),
            min(n, _SAMPLE),
        ]  # the first compiles kernels, or loads them
        took = []
        for size in sizes:
            sample = split.take(np.linspace(0, n - 1, size).astype(np.int64))
            start = time.perf_counter()
            new.fit(sample, threads=threads)
            took.append(time.perf_counter() - start)
        of_a_text = max((took[2] - took[1]) / max(sizes[2] - sizes[1], 1), took[2] / sizes[2] / 4)
        return self._seconds_of_training(took[2] + of_a_text * (n - sizes[2]))

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows beside the manifest."""
        return {}

    @abstractmethod
    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        """Train on a split; `texts` are its texts, for all that is made of them and may be shared."""

    @abstractmethod
    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text, best first."""

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        """Return the steps that change the lists of `_top_k` before a caller sees them."""
        return (Tail(tail_weight=self.options.tail_weight, propensity=self.options.propensity),)

    @abstractmethod
    def _save(self, writer: FolderWriter) -> None: ...

    @abstractmethod
    def _open(self, folder: Folder) -> None: ...

    def check(self, split: Split) -> None:
        """Raise if the method cannot be trained on `split`."""
        n_labels = int((split.labels.texts_per_label() > 0).sum())
        if len(split) == 0:
            raise DataError("training needs texts, got none")
        if not (self.reads_features or split.has_texts):
            raise DataError(
                f"{self.name} must have texts to read, got {len(split):,} rows of features without any; use data "
                "with texts, or method linear, which learns from features"
            )
        if n_labels == 0:
            raise DataError(f"training needs labels, got {len(split):,} texts without any")
        if n_labels == 1:
            only = split.vocabulary.names[int(split.labels.indices[0])]
            raise DataError(f"training needs at least two labels, got only '{only}': every text would get it")


def _versions() -> dict[str, str]:
    packages: Sequence[str] = ("longtail", "numpy", "scipy", "numba", "pyarrow")
    neural = [name for name in ("torch", "transformers") if name in sys.modules]
    return {"python": platform.python_version(), **{name: version(name) for name in (*packages, *neural)}}
