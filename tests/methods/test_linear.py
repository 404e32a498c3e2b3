"""The default of the linear family beside its presets."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail.data import load_dataset
from longtail.evaluation import evaluate_model
from longtail.methods import create_method

WITHIN = 0.003
"""What the default may be below the best preset."""


@pytest.mark.parametrize("name", ["bibtex", "delicious"])
def test_the_default_is_as_good_as_its_presets_where_texts_have_few_or_many_labels(name: str, shared: Path) -> None:
    data = load_dataset(shared / "data" / name)
    found = {
        method: evaluate_model(create_method(method).fit(data.train), data.test).metrics.values
        for method in ("linear", "linear/parabel", "linear/bonsai", "linear/dismec")
    }
    for metric in ("P@1", "P@5"):
        best = max(values[metric] for values in found.values())
        assert found["linear"][metric] >= best - WITHIN, metric
