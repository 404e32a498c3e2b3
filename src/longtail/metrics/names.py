"""What to measure, the name of each metric, and the order in which metrics are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

from pydantic import Field, PositiveInt

from longtail.errors import ConfigError, did_you_mean
from longtail.options import Options
from longtail.propensity import USUAL, Propensity

ALL = "all"
BANDS = ("head", "torso", "tail", "unseen")

ERRORS = ("ECE", "Brier")
"""Metrics of which 0 is the best value."""

T = TypeVar("T")


class MetricOptions(Options):
    """What to measure."""

    at: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 3, 5)
    """The list lengths k to measure at; a k beyond the predicted list counts the missing labels as wrong."""
    threshold: float | None = None
    """Also measure micro-F1, its precision and recall, and macro-F1 of the labels that score at least this much."""
    propensities: Annotated[tuple[Propensity, ...], Field(min_length=1)] | None = None
    """Constants of PSP and PSnDCG, by default those of the evaluated model, or a = 0.55, b = 1.5. The names of all but
    the first setting's metrics carry the constants."""

    def constants(self) -> tuple[Propensity, ...]:
        """Return the constants that are measured with."""
        return self.propensities or (USUAL,)

    def propensity_suffixes(self) -> list[str]:
        """Return what the names of PSP and PSnDCG end in, one suffix per setting."""
        return ["", *(f" ({constants})" for constants in self.constants()[1:])]

    def names(self) -> list[str]:
        """Return the names of all metrics, in the order in which they are shown; some may not be measurable."""
        by_k = [(metric, "") for metric in ("P", "R", "RP", "F1", "nDCG")]
        by_k += [(metric, suffix) for suffix in self.propensity_suffixes() for metric in ("PSP", "PSnDCG")]
        by_k += [(metric, "") for metric in ("coverage", "micro-F1", "macro-F1", *ERRORS)]
        names = [f"{metric}@{k}{suffix}" for metric, suffix in by_k for k in self.at]
        return names if self.threshold is None else [*names, "micro-F1", "micro-P", "micro-R", "macro-F1"]


def options_for(metric: str) -> MetricOptions:
    """Return the options that measure one metric, by its name (`nDCG@5`), of which more is better."""
    length = metric.partition("@")[2]
    options = MetricOptions(at=(int(length),)) if length.isdecimal() and int(length) > 0 else MetricOptions()
    if metric not in options.names():
        lower = {name.lower(): name for name in options.names()}
        raise ConfigError(f"unknown metric '{metric}'{did_you_mean(lower.get(metric.lower(), metric), lower.values())}")
    if metric.startswith(ERRORS):
        raise ConfigError(f"a score must grow as a model gets better, got '{metric}', of which 0 is best; try 'nDCG@5'")
    return options


def by_band(rows: Iterable[tuple[str, str, T]], options: MetricOptions) -> tuple[dict[str, T], dict[str, dict[str, T]]]:
    """Return (band, metric, value) rows as a table over all labels and one per band, in the order of names.

    What is missing among the rows is missing there.
    """
    values = {(band, name): value for band, name, value in rows}
    tables = {
        band: {name: values[band, name] for name in options.names() if (band, name) in values}
        for band in (ALL, *BANDS)
        if any(known == band for known, _ in values)
    }
    return tables.pop(ALL), tables
