"""What every method is: texts and labels in, a model out that names the labels of new texts.

    method.fit(texts, labels)  ->  method
    method.predict(texts, k)   ->  for each text, up to k suggestions (label id, name, score), best first
    method.top_k(texts, k)     ->  the same as a TopK of label numbers
    method.save(folder)        ->  a folder that `load_model` opens

A method implements `_fit`, `_top_k`, `_save` and `_open`; everything that is the same for all stands here.
A model knows the labels that have training texts; a label without any is in the vocabulary but never found.
"""

from __future__ import annotations

import platform
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pydantic import Field

from longtail.data.dataset import TEXT, Split, Texts, as_table
from longtail.data.vocabulary import Vocabulary
from longtail.engines.local import LocalEngine
from longtail.errors import ConfigError, DataError, NotFittedError
from longtail.machine import Needs as Needs
from longtail.options import Options, merge
from longtail.persist import Folder, FolderWriter, write_folder
from longtail.presets import load_preset
from longtail.processes import is_main_process
from longtail.progress import SILENT, Progress
from longtail.propensity import favour_tail, longer_list, propensities_of
from longtail.registry import Registry
from longtail.run import Precision, Run
from longtail.stages import NO_STAGES, FolderStages
from longtail.types import NO_LABEL, TopK

MODEL = "model"
"""The kind of folder that a saved method is."""

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "aplc-xlnet": "longtail.methods.aplc_xlnet",
        "attentionxml": "longtail.methods.attentionxml",
        "fasttext": "longtail.methods.fasttext",
        "knn": "longtail.methods.knn",
        "lightxml": "longtail.methods.lightxml",
        "linear": "longtail.methods.linear",
        "treaderxml": "longtail.methods.treaderxml",
        "xbert": "longtail.methods.xbert",
        "xml-cnn": "longtail.methods.xml_cnn",
        "xt": "longtail.methods.xt",
    },
)


class Suggestion(NamedTuple):
    """A label for a text."""

    id: str
    name: str
    score: float


class MethodOptions(Options):
    """Options of every method."""

    seed: int = Field(0, ge=0, lt=2**31)
    """Everything random is drawn from this: the same seed gives the same model, for any number of threads."""
    tail_weight: float = Field(0.0, ge=0, le=10)
    """Moves rare labels up: scores are multiplied by (w / largest w) to this power, where w is how much a right label
    counts in PSP@k. 0 leaves scores as they are, 1 weighs as PSP@k does. Nothing is trained for it."""


class Method(ABC):
    """A trainable tagger."""

    name: ClassVar[str]
    options_class: ClassVar[type[MethodOptions]]
    precisions: ClassVar[tuple[Precision, ...]] = ("auto", "fp32")
    """Numbers that a trained model can be used with."""
    precision: Precision = "auto"
    """Those that it is used with."""
    reads_features: ClassVar[bool] = False
    """Whether it learns from sparse features where data come without texts."""

    def __init__(self, preset: str | None = None, **options: Any) -> None:
        """Options lie over those of `preset` (`linear/parabel`), which lie over the defaults."""
        chosen = merge(load_preset(preset) if preset else {}, options)
        self.options: Any = self.options_class.of(chosen, source=self.name)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Untrained, with these options (plain data)."""
        return cls(**options)

    def fit(
        self,
        texts: Split | Texts,
        labels: Iterable[Iterable[str]] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
        work: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Train on a split, or on texts and their label lists.

        `work` is a folder for finished stages: a run that was killed goes on there with `resume`.
        """
        split = texts if isinstance(texts, Split) else Split.of(texts, _given(labels), vocabulary)
        self.check(split)
        key = {"options": self.options.plain(), "data": split.fingerprint, "longtail": version("longtail")}
        stages = FolderStages.open(work, key, resume) if work else NO_STAGES
        frequency = split.labels.texts_per_label()
        seen = np.flatnonzero(frequency)
        new_id = np.full(len(frequency), NO_LABEL)
        new_id[seen] = np.arange(len(seen))
        vocabulary = split.vocabulary.take(seen)
        kept = Split(split.texts, split.labels.renumber(new_id, len(seen)), vocabulary, split.features)
        self._fit(kept, Run(LocalEngine(threads), progress, stages))
        self.vocabulary_, self.train_counts_ = vocabulary, frequency[seen]
        self.facts_: dict[str, Any] = {
            "n_texts": len(split),
            "n_labels": len(seen),
            "n_labels_without_texts": len(frequency) - len(seen),
            "fingerprint": split.fingerprint,
        }
        return self

    def top_k(
        self, texts: Split | Texts, k: int = 5, *, threads: int | None = None, progress: Progress = SILENT
    ) -> TopK:
        """The best k labels of each text by number; rows are short (−1) where a model knows fewer labels."""
        self._check_fitted()
        if k < 1:
            raise ConfigError(f"k must be at least 1, got {k}")
        split = texts if isinstance(texts, Split) else None
        table = split.texts if split else as_table(texts)
        features = split.features if split else None
        run = Run(LocalEngine(threads), progress, precision=self.precision)
        if not self.tail_weight:
            return self._shown(self._top_k(table, features, k, run))
        found = self._top_k(table, features, longer_list(k), run)
        constants, *_ = propensities_of(str(self.facts_.get("name", "")))
        weigh = self.tail_weight, self.train_counts_, int(self.facts_["n_texts"]), constants
        return self._shown(favour_tail(found, k, *weigh))

    @property
    def tail_weight(self) -> float:
        """How much rare labels are moved up, see `MethodOptions`; a trained model may be given another."""
        return float(self.options.tail_weight)

    @tail_weight.setter
    def tail_weight(self, weight: float) -> None:
        self.options = self.options_class.of(self.options.plain() | {"tail_weight": weight}, source=self.name)

    def predict(
        self, texts: Split | Texts, k: int = 5, *, threads: int | None = None, progress: Progress = SILENT
    ) -> list[list[Suggestion]]:
        """Up to k suggestions for each text, best first, with label names and scores."""
        found = self.top_k(texts, k, threads=threads, progress=progress)
        return [self.named(found, row) for row in range(len(found))]

    def named(self, found: TopK, row: int) -> list[Suggestion]:
        """One row of a TopK with label ids and names."""
        ids, names = self.vocabulary_.ids, self.vocabulary_.names
        pairs = zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True)
        return [Suggestion(ids[label], names[label], score) for label, score in pairs if label != NO_LABEL]

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, in one step: an older model there is replaced only when this one stands.

        Of several processes that trained it together, the main one does that.
        """
        self._check_fitted()
        if not is_main_process():
            return
        with write_folder(path, MODEL) as writer:
            self._save(writer)
            writer.table("labels", self.vocabulary_.table)
            writer.arrays("labels", {"train_counts": self.train_counts_})
            writer.manifest |= {
                "method": self.name,
                "options": self.options.plain(),
                "data": self.facts_,
                "parent_names": dict(self.vocabulary_.parent_names),
                "versions": _versions(),
            }

    @classmethod
    def open(cls, folder: Folder) -> Self:
        """The model in a folder of `save`."""
        model = cls.from_options(folder.manifest["options"])
        model.vocabulary_ = Vocabulary(folder.table("labels"), folder.manifest["parent_names"])
        model.train_counts_ = folder.arrays("labels")["train_counts"]
        model.facts_ = folder.manifest["data"]
        model._open(folder)
        return model

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that, laid over `options`, make the method read these fields of texts (`title,text`)."""
        raise ConfigError(f"method '{cls.name}' reads the field '{TEXT}' only, got '{fields}'")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that texts must have."""
        return (TEXT,)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Further columns that are read where texts have them."""
        return ()

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """What training on `split` will take; with `measure` also how long, by a few seconds of trying.

        Parts that are trained one after the other are put together with `Needs.then`.
        """
        return Needs(0, 0, "")

    def describe(self) -> dict[str, Any]:
        """What `longtail info` shows beside the manifest."""
        return {}

    @abstractmethod
    def _fit(self, split: Split, run: Run) -> None: ...

    @abstractmethod
    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK: ...

    def _shown(self, found: TopK) -> TopK:
        """The lists of `_top_k` in the same order with scores that people can read; by default as they are."""
        return found

    @abstractmethod
    def _save(self, writer: FolderWriter) -> None: ...

    @abstractmethod
    def _open(self, folder: Folder) -> None: ...

    def check(self, split: Split) -> None:
        """Refuse what cannot be trained on."""
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

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError(f"this {type(self).__name__} is not trained; call fit or longtail.load_model first")


def _given(labels: Iterable[Iterable[str]] | None) -> Iterable[Iterable[str]]:
    if labels is None:
        raise DataError("fit needs the labels of the texts: fit(texts, label_lists), or fit(dataset.train)")
    return labels


def _versions() -> dict[str, str]:
    packages: Sequence[str] = ("longtail", "numpy", "scipy", "numba", "pyarrow")
    neural = [name for name in ("torch", "transformers") if name in sys.modules]
    return {"python": platform.python_version(), **{name: version(name) for name in (*packages, *neural)}}
