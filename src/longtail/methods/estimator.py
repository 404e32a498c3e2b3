"""The interface of scikit-learn for every method: parameters, score, probabilities, copies.

    sklearn.base.clone(model)                      an untrained model with the same preset and options
    model.set_params(ranker__threshold=0.05)       nested options by name, as `GridSearchCV` sets them
    model.score(texts, labels)                     nDCG@5, in 0..1
    model.predict_proba(texts)                     scipy.sparse (n_texts, n_labels); columns are `model.classes_`
    pickle.dumps(model), copy.deepcopy(model)      trained models too

scikit-learn is loaded only when it asks for tags. Methods do not inherit from its `BaseEstimator`, whose import alone
takes longer than a prediction.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import LabelSets, Split, Texts
from longtail.errors import ConfigError, NotFittedError
from longtail.labels.model_labels import check_known
from longtail.methods.label_space import MethodLabels
from longtail.methods.signature import OptionsDoc, OptionsSignature
from longtail.notebook import html_table, shorten
from longtail.options import Options, merge
from longtail.persist import Folder
from longtail.presets import load_preset, preset_names
from longtail.settings import with_values
from longtail.types import NO_LABEL, TopK

if TYPE_CHECKING:
    import scipy.sparse as sp
    from sklearn.utils import Tags

MODEL = "model"
"""The kind of folder that a saved method is."""
SCORE = "nDCG@5"
"""The metric of `score`: it looks at the whole list that people see, and at the order."""
_SHOWN = 60


class Estimator(MethodLabels):
    """Mixin that gives a method the interface of scikit-learn's estimators."""

    name: ClassVar[str]
    options_class: ClassVar[type[Any]]
    __signature__ = OptionsSignature()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = OptionsDoc(vars(cls).get("__doc__") or "")

    def __init__(self, preset: str | None = None, **options: Any) -> None:
        """Store what is given; `options` lie over those of `preset` (`linear/parabel`), which lie over the defaults.

        A group of options is a mapping, which changes only what it names, or an options object, which is taken whole.
        """
        self._params: dict[str, Any] = {"preset": preset, **options}
        self.options: Any = self._resolved(self._params)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Return an untrained model with these options (plain data); `get_params` has those that are not defaults."""
        model = cls(**options)
        try:
            changed = _changed(model.options, cls.options_class.of({}))
            if cls.options_class.of(changed) == model.options:
                model._params = {"preset": None, **changed}
        except ConfigError:  # some option has no default: all of them stay
            pass
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the preset and the options given with it; with `deep` also nested ones, as `ranker__threshold`."""
        return {**self._params, **(dict(_nested(self._params)) if deep else {})}

    def set_params(self, **params: Any) -> Self:
        """Change the preset or options, nested ones as `ranker__threshold`; the next `fit` uses them.

        A model that is trained goes on predicting with the options that it was trained with.
        """
        changed = dict(self._params)
        for name, value in sorted(params.items(), key=lambda item: "__" in item[0]):  # whole groups first
            group, *path = name.split("__")
            if path:
                value = with_values({group: self._group(changed, group, path)}, {name.replace("__", "."): value})[group]
            changed[group] = value
        options = self._resolved(changed)
        self._params = changed
        if not self.__sklearn_is_fitted__():
            self.options = options
        return self

    def score(self, texts: Split | Texts, labels: LabelSets | None = None, *, metric: str = SCORE) -> float:
        """Return how good the predictions for `texts` are: nDCG@5 or another metric (`P@1`, `PSP@5`, ...), in 0..1.

        Texts without labels are left out. Labels that the model does not know are missed.
        """
        from longtail.metrics import evaluate  # loads scipy, which a prediction does not need
        from longtail.metrics.names import options_for

        self._check_fitted()
        options = options_for(metric).model_copy(update={"propensities": (self.options.propensity,)})
        split = texts if isinstance(texts, Split) else Split.of(texts, labels, self.vocabulary_)
        check_known(split, self.labels)
        truth = split.over(self.vocabulary_.extended(split.vocabulary.ids)).labels
        predicted: TopK = self.top_k(split, options.at[0])  # type: ignore[attr-defined]
        metrics = evaluate(predicted, truth, self.train_counts_, int(self.facts_["n_texts"]), options)
        return metrics.values[metric]

    def predict_proba(self, texts: Split | Texts, k: int = 100, **options: Any) -> sp.csr_matrix:
        """Return the scores of the best k labels of each text as a sparse matrix (n_texts, n_labels) float32.

        Column i is label `classes_[i]`. What is not among the best k is 0; a larger k fills more. `options` are those
        of `top_k`. Scores compare labels of one text; whether they are calibrated depends on the method.
        """
        import scipy.sparse as sp

        self._check_fitted()
        n_labels = len(self.vocabulary_)
        top: TopK = self.top_k(texts, min(k, n_labels), **options)  # type: ignore[attr-defined]
        known = top.labels != NO_LABEL  # (n_texts, k)
        entries = (top.scores[known], (np.nonzero(known)[0], top.labels[known]))
        return sp.csr_matrix(entries, shape=(len(top), n_labels), dtype=np.float32)

    @property
    def classes_(self) -> NDArray[np.object_]:
        """Label ids in the order of label numbers: (n_labels,) object."""
        self._check_fitted()
        return np.array(self.vocabulary_.ids, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return "vocabulary_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        # No estimator type: for a classifier, scikit-learn would ask for the type of the labels and refuse lists.
        texts = InputTags(one_d_array=True, two_d_array=False, string=True)
        labels = TargetTags(required=True, one_d_labels=False, two_d_labels=True, multi_output=True)
        return Tags(estimator_type=None, target_tags=labels, input_tags=texts)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"params": self._params, "files": None}
        if self.__sklearn_is_fitted__():
            state["precision"] = self.precision  # type: ignore[attr-defined]
            with TemporaryDirectory(prefix="longtail-") as folder:
                self.save(Path(folder) / MODEL)  # type: ignore[attr-defined]
                state["files"] = {file.name: file.read_bytes() for file in (Path(folder) / MODEL).iterdir()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["files"] is None:
            type(self).__init__(self, **state["params"])
            return
        # Arrays stay mapped after their files are gone; Windows refuses to remove mapped files, and keeps them.
        with TemporaryDirectory(prefix="longtail-", ignore_cleanup_errors=True) as folder:
            for name, content in state["files"].items():
                (Path(folder) / name).write_bytes(content)
            vars(self).update(vars(self.open(Folder(folder, MODEL), state["precision"])))  # type: ignore[attr-defined]
        self._params = state["params"]

    def __repr__(self) -> str:
        preset, *options = self._params.items()
        given = [repr(preset[1])] if preset[1] is not None else []
        given += [f"{name}={shorten(repr(value), _SHOWN)}" for name, value in options]
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in self._params.items() if value is not None]
        trained = "not trained"
        if self.__sklearn_is_fitted__():
            trained = f"{self.facts_['n_texts']:,} texts, {self.facts_['n_labels']:,} labels"
        return html_table(type(self).__name__, [*rows, ("trained on", trained)])

    def _resolved(self, params: Mapping[str, Any]) -> Any:
        """Return the options of these parameters, checked."""
        given = dict(params)
        preset = given.pop("preset", None)
        if preset is not None and not (isinstance(preset, str) and preset.startswith(f"{self.name}/")):
            known = ", ".join(preset_names(self.name)) or "none"
            raise ConfigError(f"preset must be one of {self.name} ({known}), got {preset!r}; options are given by name")
        return self.options_class.of(merge(load_preset(preset) if preset else {}, given), source=self.name)

    def _use_params(self) -> None:
        """Take the options that `set_params` left for this training."""
        options = self._resolved(self._params)
        if options != self.options:
            self.options = options

    def _group(self, params: Mapping[str, Any], name: str, path: list[str]) -> Any:
        """Return the group of options that a nested name changes: what was given, or all of it to find list members."""
        if any(step == "*" or step.isdecimal() for step in path):
            return self._resolved(params).plain().get(name, {})
        group = params.get(name, {})
        return group.plain() if isinstance(group, Options) else group

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"this {type(self).__name__} is not trained; call fit or longtail.load_model first")


def _not_fitted(message: str) -> NotFittedError:
    """Return an error that is also scikit-learn's own `NotFittedError` where scikit-learn is loaded."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    kind = type("NotFittedError", (NotFittedError, theirs), {}) if theirs else NotFittedError
    error: NotFittedError = kind(message)
    return error


def _nested(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the options inside of groups by nested name."""
    for name, value in params.items():
        group = value.model_dump(exclude_unset=True) if isinstance(value, Options) else value
        if isinstance(group, Mapping):
            for inner, below in group.items():
                yield f"{prefix}{name}__{inner}", below
            yield from _nested(group, f"{prefix}{name}__")


def _changed(options: Options, default: Options) -> dict[str, Any]:
    """Return what must be laid over `default` to get `options`, as plain data."""
    changed: dict[str, Any] = {}
    plain = options.plain()
    for name in type(options).model_fields:
        value, usual = getattr(options, name), getattr(default, name)
        if value != usual:
            same_group = isinstance(value, Options) and type(value) is type(usual)
            changed[name] = _changed(value, usual) if same_group else plain[name]
    return changed
