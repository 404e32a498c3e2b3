"""The metrics that are a ratio of two sums over texts: all but coverage, macro-F1 and ECE.

For every metric and band, each text adds something to the numerator (`above`) and to the denominator (`below`); a mean
adds 1 to the denominator. The bootstrap, which weights texts, needs nothing else.

    Judged  ->  TextSums: above (n_texts,), below (n_texts,); the metric is above.sum() / below.sum()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.metrics.calibration import Scored, scored_places
from longtail.metrics.hits import BandHits, Cut, Judged, cuts
from longtail.metrics.names import MetricOptions
from longtail.propensity import inverse_propensity


class TextSums(NamedTuple):
    """What each text adds to a metric of a band."""

    band: str
    name: str
    above: NDArray[np.float64]  # (n_texts,)
    below: NDArray[np.float64]  # (n_texts,)


def text_sums(judged: Judged, options: MetricOptions) -> Iterator[TextSums]:
    """Yield every metric of every band, one at a time, so that a caller can drop what it has summed."""
    weights = [inverse_propensity(judged.train_counts, judged.n_train_texts, p) for p in options.constants()]
    sets, places = cuts(judged, options), scored_places(judged, max(options.at))
    for part in judged.bands():
        scored = places.take(judged.in_band(places.label, part.band))
        counted = (part.n_true > 0).astype(np.float64)
        for k in options.at:
            for name, above in _means(part, k):
                yield TextSums(part.band, f"{name}@{k}", above, counted)
            for weight, suffix in zip(weights, options.propensity_suffixes(), strict=True):
                for name, above, below in _weighted(part, k, weight):
                    yield TextSums(part.band, f"{name}@{k}{suffix}", above, below)
            yield _brier(part, k, scored)
        in_band = judged.in_band(judged.labels, part.band)  # (n_texts, width)
        for cut in sets:
            yield from _micro(part, cut, in_band)


def _means(part: BandHits, k: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    near = part.hit_place < k
    text, place = part.hit_text[near], part.hit_place[near]
    hits = _per_text(part, text)
    yield "P", hits / k
    yield "R", hits / np.maximum(part.n_true, 1)
    yield "RP", hits / np.clip(part.n_true, 1, k)
    yield "F1", 2.0 * hits / (k + part.n_true)
    yield "nDCG", _per_text(part, text, _gain(place)) / _ideal_gain(part, k)


def _weighted(
    part: BandHits, k: int, weight: NDArray[np.float64]
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    near, best = part.hit_place < k, part.true_place < k
    text, place, hit = part.hit_text[near], part.hit_place[near], weight[part.hit_label[near]]
    best_text, best_place, true = part.true_text[best], part.true_place[best], weight[part.true_label[best]]
    yield "PSP", _per_text(part, text, hit), _per_text(part, best_text, true)
    ideal = _ideal_gain(part, k)
    yield (
        "PSnDCG",
        _per_text(part, text, hit * _gain(place)) / ideal,
        _per_text(part, best_text, true * _gain(best_place)) / ideal,
    )


def _brier(part: BandHits, k: int, scored: Scored) -> TextSums:
    near = scored.take(scored.place < k)
    distance = _per_text(part, near.text, (near.score - near.right) ** 2)
    return TextSums(part.band, f"Brier@{k}", distance, _per_text(part, near.text))


def _micro(part: BandHits, cut: Cut, in_band: NDArray[np.bool_]) -> Iterator[TextSums]:
    hits = _per_text(part, part.hit_text[cut.predicted[part.hit_text, part.hit_place]])
    predicted = np.count_nonzero(cut.predicted & in_band, axis=1).astype(np.float64)
    true = part.n_true.astype(np.float64)
    yield TextSums(part.band, f"micro-F1{cut.suffix}", 2.0 * hits, predicted + true)
    if not cut.suffix:
        yield TextSums(part.band, "micro-P", hits, predicted)
        yield TextSums(part.band, "micro-R", hits, true)


def _per_text(
    part: BandHits, text: NDArray[np.int64], amount: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    return np.bincount(text, amount, len(part.n_true)).astype(np.float64)


def _gain(place: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(1.0 / np.log2(place + 2.0))


def _ideal_gain(part: BandHits, k: int) -> NDArray[np.float64]:
    """Return the DCG of the best possible list of each text; 1 if the text has no label of the band."""
    return np.cumsum(_gain(np.arange(min(k, part.n_true.max(initial=1)))))[np.clip(part.n_true, 1, k) - 1]
