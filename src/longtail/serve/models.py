"""The models of a server, by name; a model is replaced by a newer one in a single step.

Models.open({"books": "my-model"})   ->  Models
models.get("books")                  ->  ServedModel: method, revision, labels as JSON
models.reload("books")               opens the folder again if it was replaced; requests meanwhile get the old one
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from longtail.data.arrow import string_array
from longtail.data.dataset import TEXT
from longtail.errors import ConfigError, did_you_mean
from longtail.labels.search import LabelSearch
from longtail.methods import load_model
from longtail.methods.base import Method
from longtail.persist import revision_of
from longtail.run.run import Run
from longtail.serve.answers import LabelJson
from longtail.serve.problems import Problem
from longtail.text.readings import TextReadings

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
"""What a model may be called."""
_WARM_UP = (1, 17)
"""Numbers of texts that are tagged when a model is opened: kernels for few texts and for many are compiled then."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """An open model."""

    name: str
    path: Path
    method: Method
    revision: str
    """A hash of the model's manifest, and with it of all its files."""
    opened: datetime
    labels: LabelJson = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", LabelJson(self.method.vocabulary_))

    @classmethod
    def open(cls, name: str, path: str | Path, run: Run) -> Self:
        """Open the model in a folder, and tag a few words with it."""
        while True:
            revision = revision_of(path)
            method = load_model(path)
            if revision == revision_of(path):
                break
        served = cls(name, Path(path), method, revision, datetime.now(UTC))
        for n_texts in _WARM_UP:
            method.top_k(
                TextReadings(served.table(served.columns_of_text, [("",) * len(served.columns_of_text)] * n_texts)),
                run=run,
            )
        return served

    @cached_property
    def columns_of_text(self) -> tuple[str, ...]:
        """The columns that a text without fields stands in."""
        return tuple(dict.fromkeys((TEXT, *self.method.columns)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The fields of records that are read; those of `method.columns` must be there."""
        return (*self.method.columns, *self.method.optional_columns)

    @cached_property
    def search(self) -> LabelSearch:
        """Finds labels by their names."""
        return LabelSearch(self.method.vocabulary_, self.method.train_counts_)

    @property
    def is_calibrated(self) -> bool:
        """Whether scores are probabilities."""
        return self.method.chain_.calibration is not None

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> pa.Table:
        """Return texts, each a row of fields, as the table that methods read."""
        fields = zip(*rows, strict=True)
        return pa.table(
            {name: string_array([text.encode() for text in texts]) for name, texts in zip(columns, fields, strict=True)}
        )

    def facts(self) -> dict[str, Any]:
        """Return what `/v1/model` says of it."""
        facts = self.method.facts_
        return {
            "name": self.name,
            "method": self.method.name,
            "revision": self.revision,
            "opened": self.opened.isoformat(timespec="seconds"),
            "n_labels": len(self.method.vocabulary_),
            "n_labels_scored": len(self.method.scored_labels_),
            "n_train_texts": facts["n_texts"],
            "trained_on": facts.get("name"),
            "fields": list(self.method.columns),
            "optional_fields": list(self.method.optional_columns),
            "calibrated": self.is_calibrated,
        }


class Models:
    """The models of a server; the first is asked where a request names none."""

    def __init__(self, models: Iterable[ServedModel], run: Run | None = None) -> None:
        self.run = run or Run()
        self._models = {model.name: model for model in models}
        self._lock = threading.Lock()
        if not self._models:
            raise ConfigError("a server must have at least one model, got none")

    @classmethod
    def open(cls, folders: Mapping[str, str | Path], run: Run | None = None) -> Models:
        """Open models by name."""
        wrong = next((name for name in folders if not NAME.fullmatch(name)), None)
        if wrong is not None:
            raise ConfigError(
                f"a model's name must be letters, digits, '.', '_' and '-', got '{wrong}'; write NAME=MODEL"
            )
        run = run or Run()
        return cls([ServedModel.open(name, path, run) for name, path in folders.items()], run)

    @property
    def default(self) -> ServedModel:
        """The first model."""
        return next(iter(self._models.values()))

    def __iter__(self) -> Any:
        return iter(list(self._models.values()))

    def get(self, name: str | None = None) -> ServedModel:
        """Return a model by name, or the first one; raise 404 if there is none of this name."""
        if name is None:
            return self.default
        model = self._models.get(name)
        if model is None:
            raise Problem(
                404, f"there is no model '{name:.100}'{did_you_mean(name[:100], self._models)}; /v1/model lists all"
            )
        return model

    def reload(self, name: str | None = None) -> list[ServedModel]:
        """Open the folders of one model or of all again where they were replaced; return the models that are new.

        Raises what `load_model` raises; then nothing has changed.
        """
        with self._lock:
            old = list(self) if name is None else [self.get(name)]
            new = [
                ServedModel.open(model.name, model.path, self.run)
                for model in old
                if revision_of(model.path) != model.revision
            ]
            self._models |= {model.name: model for model in new}
            return new
