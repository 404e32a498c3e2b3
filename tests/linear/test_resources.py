"""What training the linear family will take, told before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data.dataset import Dataset, Split
from longtail.data.formats.batch import no_texts
from longtail.labels.tree import TreeOptions
from longtail.linear.ranker import RankerOptions
from longtail.linear.resources import estimate_linear, linear_seconds
from longtail.text.fields import TfidfOptions

Tiny = Callable[..., Dataset]


def test_the_parts_make_up_the_memory(tiny: Tiny) -> None:
    needs = estimate_linear(tiny().train, TfidfOptions(), RankerOptions(), 1)
    assert sum(size for _, size in needs.parts) == pytest.approx(needs.memory_bytes, abs=len(needs.parts))
    assert needs.gpu_bytes == 0
    assert needs.seconds is None
    several = estimate_linear(tiny().train, TfidfOptions(), RankerOptions(), 5)
    assert several.memory_bytes > needs.memory_bytes
    assert several.disk_bytes > needs.disk_bytes


def test_columns_that_no_text_uses_take_memory_too(tiny: Tiny) -> None:
    few, many = (
        replace(split, texts=no_texts(len(split)), features=sp.csr_matrix(np.ones((len(split), 1))))
        for split in (tiny().train, tiny().train)
    )
    many.features.resize(len(many), 10**8)
    needs = [estimate_linear(split, TfidfOptions(), RankerOptions(), 1).memory_bytes for split in (few, many)]
    assert needs[1] - needs[0] == pytest.approx(8e8, rel=0.01)


def test_fewer_weights_are_counted_where_more_are_dropped_and_shorter_label_vectors(tiny: Tiny) -> None:
    def parts(ranker: RankerOptions, max_weights: int | None = 300) -> dict[str, int]:
        return dict(estimate_linear(tiny().train, TfidfOptions(), ranker, 1, max_weights=max_weights).parts)

    usual = parts(RankerOptions())
    assert (
        parts(RankerOptions(threshold=0.13))["weights"]
        < usual["weights"]
        == parts(RankerOptions(threshold=0))["weights"]
    )
    clusters = [parts(RankerOptions(), limit)["programs and clusters"] for limit in (1, 2, None)]
    assert clusters == sorted(set(clusters))


def seconds(split: Split, tree: TreeOptions, ranker: RankerOptions, a_text: float) -> tuple[float, list[int]]:
    """What is told where a training takes `a_text` seconds a text; and the texts of each trial."""
    clock, sizes = [0.0], []

    def fit(part: Split) -> None:
        sizes.append(len(part))
        clock[0] += a_text * len(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: clock[0])
        return linear_seconds(split, tree, ranker, fit), sizes


def test_few_texts_are_simply_timed(tiny: Tiny) -> None:
    told, sizes = seconds(tiny(60).train, TreeOptions(), RankerOptions(), 0.1)
    assert told == pytest.approx(6.0)
    assert sizes == [60, 60]


def test_trials_are_short_and_time_grows_a_little_faster_than_texts(tiny: Tiny) -> None:
    split = tiny(100, 8).train.take(np.arange(20_000) % 100)
    told, sizes = seconds(split, TreeOptions(), RankerOptions(negatives="cluster"), 1e-3)
    assert sizes == [500, 500, 2000]
    assert told == pytest.approx(20.0 * 10**0.13, rel=0.05)
    quick, sizes = seconds(split, TreeOptions(), RankerOptions(negatives="cluster"), 1e-6)
    assert sizes == [500, 500, 16_000]
    assert quick == pytest.approx(0.02, rel=0.1)


def test_more_labels_in_all_texts_than_in_the_trial_take_longer(tiny: Tiny) -> None:
    """Labels that only the last texts have: a trial sees a few of them."""
    split = tiny(100, 8).train.take(np.arange(4000) % 100)
    lists = [[f"l{number % 8}" if number < 2000 else f"l{number}"] for number in range(4000)]
    many = Split.of(split.texts, lists)
    flat, ranker = TreeOptions(n_levels=0), RankerOptions(negatives="all")
    assert seconds(many, flat, ranker, 1e-3)[0] > 1.5 * seconds(split, flat, ranker, 1e-3)[0]
