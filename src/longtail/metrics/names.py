"""What to measure, what each figure is called, and in which order figures are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

from pydantic import Field, PositiveInt

from longtail.options import Options
from longtail.propensity import USUAL, Propensity

ALL = "all"
BANDS = ("head", "torso", "tail", "unseen")

T = TypeVar("T")


class MetricOptions(Options):
    """What to measure."""

    at: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 3, 5)
    """The list lengths k to measure at; a k beyond the predicted list counts the missing labels as wrong."""
    threshold: float | None = None
    """Also give micro-F1 and macro-F1 of the labels that score at least this much."""
    propensities: Annotated[tuple[Propensity, ...], Field(min_length=1)] = (USUAL,)
    """Constants of PSP and PSnDCG. The names of all but the first setting's metrics carry the constants."""

    def propensity_suffixes(self) -> list[str]:
        """What the names of PSP and PSnDCG end in, one a setting."""
        return ["", *(f" ({constants})" for constants in self.propensities[1:])]

    def names(self) -> list[str]:
        """The names of all metrics, in the order in which they are read."""
        by_k = [(metric, "") for metric in ("P", "R", "RP", "F1", "nDCG")]
        by_k += [(metric, suffix) for suffix in self.propensity_suffixes() for metric in ("PSP", "PSnDCG")]
        by_k += [(metric, "") for metric in ("coverage", "micro-F1", "macro-F1")]
        names = [f"{metric}@{k}{suffix}" for metric, suffix in by_k for k in self.at]
        return names if self.threshold is None else [*names, "micro-F1", "macro-F1"]


def by_band(
    found: Iterable[tuple[str, str, T]], options: MetricOptions
) -> tuple[dict[str, T], dict[str, dict[str, T]]]:
    """Sort (band, metric, value) into those over all labels and those of each band, in reading order."""
    values = {(band, name): value for band, name, value in found}
    tables = {
        band: {name: values[band, name] for name in options.names()}
        for band in (ALL, *BANDS)
        if any(known == band for known, _ in values)
    }
    return tables.pop(ALL), tables
