"""Trained networks in lighter numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError
from longtail.methods import create_method, load_model
from longtail.nn.precision import resolve_precision

LIGHTER = ["bf16", "int8"]
TEXTS = 150


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(TEXTS, 12)


@pytest.fixture(scope="module")
def folder(data: Dataset, quick: Callable[[str], dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("precision") / "m"
    create_method("lightxml", quick("lightxml")).fit(data.train, threads=1).save(place)
    return place


@pytest.mark.parametrize("precision", LIGHTER)
def test_the_best_labels_stay(folder: Path, data: Dataset, precision: Any) -> None:
    usual = load_model(folder).top_k(data.test, 5, threads=1)
    light = load_model(folder, precision=precision).top_k(data.test, 5, threads=1)
    assert not np.array_equal(light.scores, usual.scores)  # it was indeed read in other numbers
    np.testing.assert_allclose(light.scores, usual.scores, atol=0.05)
    shared = [len({*mine} & {*theirs}) for mine, theirs in zip(light.labels, usual.labels, strict=True)]
    assert np.mean(shared) / 5 > 0.9
    assert np.mean(light.labels[:, 0] == usual.labels[:, 0]) > 0.95


def test_labels_keep_their_weights_and_the_network_stays_as_it_was(folder: Path, data: Dataset) -> None:
    model: Any = load_model(folder, precision="int8")
    tagger = model.members_[0].tagger
    before = {name: value.clone() for name, value in tagger.network.state_dict().items()}
    light = tagger.quantised("int8")
    assert light.head is tagger.network.head
    assert not any(isinstance(module, nn.Linear) for module in light.encoder.modules())
    assert light is tagger.quantised("int8")  # made once
    assert all(torch.equal(value, before[name]) for name, value in tagger.network.state_dict().items())
    as_trained = load_model(folder, precision="fp32").top_k(data.test, 5, threads=1)
    np.testing.assert_array_equal(as_trained.scores, load_model(folder).top_k(data.test, 5, threads=1).scores)


def test_what_a_method_or_a_device_cannot_do_is_refused(folder: Path, data: Dataset, tmp_path: Path) -> None:
    unknown: Any = "int4"
    with pytest.raises(ConfigError, match="must be one of auto, fp32, bf16, int8 for method lightxml, got 'int4'"):
        load_model(folder, precision=unknown)
    create_method("linear").fit(data.train).save(tmp_path / "m")
    with pytest.raises(ConfigError, match="must be one of auto, fp32 for method linear, got 'int8'"):
        load_model(tmp_path / "m", precision="int8")
    with pytest.raises(ConfigError, match="on a GPU, got int8"):
        resolve_precision("int8", torch.device("cuda"))
    assert resolve_precision("auto", torch.device("cuda")) == "bf16"
    assert resolve_precision("auto", torch.device("cpu")) == "fp32"
