"""How far a metric would move on other texts of the same kind: percentile bootstrap over texts.

A resample draws n_texts texts with replacement, so each text gets an integer weight. Both sums of a ratio use the same
weights, and so do two systems that are compared on the same texts. A resample holds only about 63 % of the distinct
texts, which lowers metrics that count distinct labels and adds noise to ECE: the intervals of coverage, macro-F1 and
ECE are shifted by the difference between the value and the mean of the resamples. On 120 simulated test sets of 1,500
texts, shifted 95 % intervals held the true coverage 94 times in 100, unshifted ones 44 times; macro-F1 84 and 73 times.

ECE is too high on few texts, because chance alone parts scores from shares: perfectly calibrated lists of 1,500 texts
have a measured ECE@5 of 0.013. Its interval stands around that figure. On 60 simulated test sets it held a true ECE@5
of 0.063 95 times in 100 and one of 0.012 70 times, unshifted 95 and 7 times.

    weights (n_resamples, n_texts) × sums (n_texts, n_metrics)  ->  metrics (n_resamples, n_metrics)  ->  quantiles
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from longtail.metrics.by_label import LabelCounts
from longtail.metrics.by_text import text_sums
from longtail.metrics.calibration import CalibrationErrors
from longtail.metrics.hits import Judged, judge
from longtail.metrics.names import MetricOptions, by_band
from longtail.options import Options
from longtail.types import LabelMatrix, TopK

_NUMBERS_AT_ONCE = 1 << 22


class BootstrapOptions(Options):
    """How intervals are drawn."""

    n_resamples: Annotated[int, Field(ge=20)] = 1000
    """More resamples give more stable ends of the interval."""
    level: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95
    """Share of the resamples inside the interval."""
    seed: NonNegativeInt = 0
    """The same seed gives the same interval."""


@dataclass(frozen=True)
class Interval:
    """A value, or the difference of two, and the interval around it."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside; for a difference, that one system is better."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Intervals:
    """Intervals by metric, over all labels and by band."""

    values: dict[str, Interval]
    bands: dict[str, dict[str, Interval]]
    n_texts: int
    options: BootstrapOptions

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "metrics": _plain(self.values),
            "bands": {band: _plain(values) for band, values in self.bands.items()},
            "n_texts": self.n_texts,
            "bootstrap": self.options.plain(),
        }


def intervals(
    predicted: TopK,
    truth: LabelMatrix,
    train_counts: NDArray[Any],
    n_train_texts: int,
    options: MetricOptions | None = None,
    bootstrap: BootstrapOptions | None = None,
    *,
    minus: TopK | None = None,
) -> Intervals:
    """Return the interval of every metric that `evaluate` gives with the same arguments.

    With `minus`, the lists of a second system for the same texts, these are intervals of the paired difference: the
    metric of `predicted` minus that of `minus`, both on the same resampled texts; of metrics that both systems have.
    """
    options, bootstrap = options or MetricOptions(), bootstrap or BootstrapOptions()
    system = _Resampled(judge(predicted, truth, train_counts, n_train_texts, options), options)
    value, resampled = system.value, system.resample(bootstrap)
    if minus is not None:
        other = _Resampled(judge(minus, truth, train_counts, n_train_texts, options), options)
        value, resampled = value - other.value, resampled - other.resample(bootstrap)
    measured = np.flatnonzero(~np.isnan(value))
    value, resampled = value[measured], resampled[:, measured]
    outside = (1.0 - bootstrap.level) / 2.0
    # NaN: a resample without any text of a band says nothing about it.
    shifted = resampled + np.where(system.is_shifted[measured], value - np.nanmean(resampled, axis=0), 0.0)
    low, high = np.nanquantile(shifted, [outside, 1.0 - outside], axis=0)
    low, high = (np.clip(end, 0.0 if minus is None else -1.0, 1.0) for end in (low, high))
    rows = [
        (*system.names[metric], Interval(float(value[i]), float(low[i]), float(high[i])))
        for i, metric in enumerate(measured)
    ]
    overall, bands = by_band(rows, options)
    return Intervals(overall, bands, system.n_texts, bootstrap)


class _Resampled:
    """The metrics of one system as functions of the weights of texts."""

    def __init__(self, judged: Judged, options: MetricOptions) -> None:
        self.n_texts = judged.n_texts
        sums = list(text_sums(judged, options))
        # All means of a band share the denominator.
        below = {id(s.below): s.below for s in sums}
        place = {key: i for i, key in enumerate(below)}
        self._above = np.stack([s.above for s in sums], axis=1)  # (n_texts, n_sums)
        self._below = np.stack(list(below.values()), axis=1)  # (n_texts, n_distinct)
        self._below_of = np.array([place[id(s.below)] for s in sums])
        counts = LabelCounts(judged, options)
        self._others = (counts, CalibrationErrors(judged, options))
        self._n_rows = max(self.n_texts, counts.n_labels)
        self.names = [(s.band, s.name) for s in sums] + [name for other in self._others for name in other.names]
        self.is_shifted = np.arange(len(self.names)) >= len(sums)  # (n_metrics,)
        self.value = self._metrics(np.ones((1, self.n_texts)))[0]

    def resample(self, bootstrap: BootstrapOptions) -> NDArray[np.float64]:
        """Return every metric in every resample: (n_resamples, n_metrics)."""
        step = max(1, _NUMBERS_AT_ONCE // self._n_rows)
        return np.concatenate([self._metrics(w) for w in _weights(self.n_texts, step, bootstrap)])

    def _metrics(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        below = (weights @ self._below)[:, self._below_of]
        ratios = np.divide(weights @ self._above, below, out=np.full(below.shape, np.nan), where=below > 0)
        return np.concatenate([ratios, *(other.values(weights.T).T for other in self._others)], axis=1)


def _weights(n_texts: int, step: int, bootstrap: BootstrapOptions) -> Iterator[NDArray[np.float32]]:
    """Yield how often each text was drawn, (at most step, n_texts) at a time."""
    generator = np.random.default_rng(bootstrap.seed)
    for start in range(0, bootstrap.n_resamples, step):
        n_rows = min(step, bootstrap.n_resamples - start)
        drawn = generator.integers(0, n_texts, (n_rows, n_texts)) + np.arange(n_rows)[:, None] * n_texts
        yield np.bincount(drawn.ravel(), minlength=n_rows * n_texts).reshape(n_rows, n_texts).astype(np.float32)


def _plain(values: dict[str, Interval]) -> dict[str, dict[str, float]]:
    return {name: {"value": v.value, "low": v.low, "high": v.high} for name, v in values.items()}
