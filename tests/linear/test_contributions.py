"""Words and bias add up to the margins that the beam search computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from longtail.data import load_dataset
from longtail.data.dataset import Dataset
from longtail.linear.contributions import path_terms
from longtail.methods import create_method
from longtail.methods.linear import Linear
from longtail.text.readings import TextReadings


def test_bias_and_words_are_the_margin_of_each_level(tiny: Callable[..., Dataset]) -> None:
    data = load_dataset("debtags-sample")
    model = Linear(n_seeds=2).fit(data.train.take(np.arange(800)))
    for text in data.dev.texts["text"][:4].to_pylist():
        row = TextReadings.of([text]).rows(model.features_, None)  # type: ignore[arg-type]
        for suggestion in model.predict([text], 3)[0]:
            explanation = model.explain(text, suggestion.id)
            label = int(np.flatnonzero(model.scored_labels_ == model.vocabulary_.position[suggestion.id])[0])
            margins = [
                of_level for one in model.members_ for of_level in margins_by_search(one.tree.layers, row, label)
            ]
            assert len(explanation.levels) == len(margins) > 2
            for level, margin in zip(explanation.levels, margins, strict=True):
                assert level.margin == pytest.approx(margin, abs=1e-5)
                assert level.bias + sum(word.weight for word in level.words) == pytest.approx(margin, abs=1e-5)


def margins_by_search(layers, row, label):  # type: ignore[no-untyped-def]
    """The margins from the root to a label, as the kernels of the search compute them."""
    path, child = [], label
    for layer in reversed(layers):
        place = int(np.flatnonzero(layer.children == child)[0])
        cluster = int(np.searchsorted(layer.child_ptr, place, "right")) - 1
        n = int(np.diff(layer.child_ptr)[cluster])
        at, zero = np.array([[cluster]], np.int32), np.zeros((1, 1), np.float32)
        best, scores = layer.best(row, at, zero, n, 1.0, 0)  # log σ(margin)
        log_sigmoid = float(scores[0][best[0] == child][0])
        path.append(-np.log(np.expm1(-log_sigmoid)))
        child = cluster
    return path[::-1]


def test_features_that_a_cluster_never_saw_add_nothing(tiny: Callable[..., Dataset]) -> None:
    model = create_method("linear").fit(tiny().train)
    row = TextReadings.of(["unheard of"]).rows(model.features_, None)  # type: ignore[attr-defined]
    assert all(not terms.terms.any() for terms in path_terms(model.members_[0].tree, row, 0))  # type: ignore[attr-defined]
