"""One change of a model's ranked lists: what every score step can do.

    TopK (n_texts, n)  ->  step  ->  TopK (n_texts, k)

A step is a frozen group of options, so it is saved as plain data, and any number of threads may use it at once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.options import Options
from longtail.registry import Registry
from longtail.types import TopK

Curve: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Scores, ascending, and what is shown instead of each; between two of them it is interpolated."""
NO_CURVE: Curve = ((), ())


class ScoreStep(Options):
    """Base of all score steps; each adds a `kind`, the name that it is registered and saved under."""

    kind: str

    def n_candidates(self, k: int) -> int:
        """Return how many labels per text this step must be given so that it can return `k`."""
        return k

    def allowed(self, labels: ModelLabels) -> NDArray[np.bool_] | None:
        """Return which labels (n_labels,) may be in a list; None if all may."""
        return None

    def shown_as(self, labels: ModelLabels) -> NDArray[np.int32] | None:
        """Return the number of the label that each label (n_labels,) is suggested as; None: all as themselves."""
        return None

    def exported_curve(self) -> Curve:
        """Return the points of the rising curve that scores are read from, if this step does no more than that.

        No points mean that the step changes nothing. A step that changes the order of labels raises: exported graphs
        cannot do it.
        """
        raise ConfigError(
            f"score steps must keep the order of labels for an export, but this model has a step '{self.kind}'; "
            "serve it with longtail serve instead"
        )

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the changed lists, at most `k` labels per text."""
        return lists.first(k)


STEPS: Registry[type[ScoreStep]] = Registry(
    "score_step",
    {
        "calibrate": "longtail.scores.calibrate",
        "display": "longtail.scores.display",
        "edits": "longtail.scores.edits",
        "filter": "longtail.scores.filters",
        "label_scales": "longtail.scores.label_scales",
        "new_labels": "longtail.scores.new_labels",
        "tail": "longtail.scores.tail",
        "threshold": "longtail.scores.threshold",
    },
)
