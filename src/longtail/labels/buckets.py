"""Label buckets by training frequency: frequent labels first, cut into runs of neighbours.

Specified in docs/methods/aplc-xlnet.md#label-buckets.

    counts (n_labels,)  ->  Buckets: order (n_labels,) the label at each place, edges (n_buckets + 1,)

Places go by falling count, ties by label id. Bucket b holds the places `edges[b]` to `edges[b + 1]`. The
order comes from training texts only and must be stored with the model: every score depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from longtail.errors import ConfigError, DataError
from longtail.mapped_arrays import Arrays
from longtail.options import Options
from longtail.structure import Structure

_ROUNDING = 1e-6
"""Shares are decimal fractions: their sums may miss a whole number of labels by this much."""


class BucketOptions(Options):
    """Where labels, ordered by frequency, are cut into buckets."""

    shares: tuple[float, ...] = Field((0.5, 0.5), min_length=1)
    """Share of the labels in each bucket, the most frequent ones first; together 1. Buckets that get no label are
    left out, so that small label sets work."""
    cuts: tuple[PositiveInt, ...] | None = None
    """Places of the cuts instead of shares: 0 < first < … < number of labels. An empty list makes one bucket."""

    @model_validator(mode="after")
    def _shares_are_whole_and_cuts_rise(self) -> Self:
        if min(self.shares) <= 0 or abs(sum(self.shares) - 1) > _ROUNDING:
            raise ValueError(f"shares must all be above 0 and add up to 1, got {list(self.shares)}")
        if self.cuts and any(left >= right for left, right in pairwise(self.cuts)):
            raise ValueError(f"cuts must rise, got {list(self.cuts)}")
        return self


@dataclass(frozen=True, eq=False)
class Buckets:
    """Labels by falling frequency, and where the buckets begin and end."""

    order: NDArray[np.int64]  # (n_labels,) label at each place
    edges: NDArray[np.int64]  # (n_buckets + 1,) from 0 to n_labels

    @property
    def n_labels(self) -> int:
        """Labels of all buckets."""
        return len(self.order)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Labels of each bucket."""
        return np.diff(self.edges)

    def places(self) -> NDArray[np.int64]:
        """Return the place of each label: what `LabelMatrix.renumber` takes."""
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        return {"order": self.order, "edges": self.edges}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_labels: int) -> Buckets:
        """Return the buckets of so many labels of which `arrays` gave these."""
        stored = Structure(arrays, "the buckets")
        order = stored.numbers("order", np.int64, below=n_labels, n=n_labels)
        stored.require("order", len(np.unique(order)) == n_labels, "hold every label once")
        edges = stored.pointers("edges", to=order)
        stored.require("edges", bool((edges[1:] > edges[:-1]).all()), "leave no bucket empty")
        return cls(order, edges)


def build_buckets(counts: NDArray[Any], options: BucketOptions) -> Buckets:
    """Order labels by their number of training texts and cut them into buckets."""
    n_labels = len(counts)
    if n_labels == 0:
        raise DataError("buckets need at least one label, got none; check the label column of the training texts")
    order = np.argsort(-np.asarray(counts, np.int64), kind="stable").astype(np.int64)
    cuts = _cuts_of_shares(options.shares, n_labels) if options.cuts is None else _checked(options.cuts, n_labels)
    return Buckets(order, np.array([0, *cuts, n_labels], np.int64))


def _checked(cuts: tuple[int, ...], n_labels: int) -> tuple[int, ...]:
    if cuts and cuts[-1] >= n_labels:
        raise ConfigError(
            f"cuts must be below the number of labels, {n_labels}, got {list(cuts)}; give shares instead to fit any "
            "number of labels"
        )
    return cuts


def _cuts_of_shares(shares: tuple[float, ...], n_labels: int) -> list[int]:
    """Round cuts down, as published ones are; drop a cut that would leave a bucket empty."""
    wanted = np.floor(np.cumsum(shares[:-1]) * n_labels + _ROUNDING).astype(np.int64)
    return sorted({int(cut) for cut in wanted if 0 < cut < n_labels})
