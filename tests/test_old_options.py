"""Models that earlier versions saved still open: their options are read as this version names them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.methods import create_method, load_model
from longtail.methods.base import MODEL
from longtail.old_options import current_options
from longtail.persist import Folder, write_folder
from longtail.settings import value_at, with_values

OLD_AND_NEW = [
    ("linear", "vectors.0.weighting", {"paper": "equal", "fixed": "equal", "code": "by_label_count"}),
    ("xt", "vectors.weighting", {"paper": "equal", "fixed": "equal", "code": "by_label_count"}),
    ("aplc-xlnet", "labels.tails", {"paper": "linear", "fixed": "normed", "code": "normed"}),
    ("aplc-xlnet", "labels.gates", {"paper": "touched", "fixed": "always", "code": "always"}),
    ("aplc-xlnet", "labels.normaliser", {"paper": "per_batch", "fixed": "per_text", "code": "per_text"}),
    ("lightxml", "shortlist.bottleneck", {"paper": "sigmoid", "fixed": "linear", "code": "linear"}),
    ("lightxml", "shortlist.loss", {"paper": "sum", "fixed": "mean", "code": "mean_over_slots"}),
    ("treaderxml", "encoder.mask", {"paper": "anticausal", "fixed": "causal"}),
    ("treaderxml", "scope.parentless", {"paper": "drop", "fixed": "keep"}),
    ("treaderxml", "loss", {"paper": "softmax_sigmoid", "fixed": "bce"}),
]


@pytest.mark.parametrize(("method", "path", "values"), OLD_AND_NEW)
def test_old_values_are_read_as_what_they_do(method: str, path: str, values: dict[str, str]) -> None:
    options = with_values(create_method(method).options.plain(), {"tail_weight": 0.5})
    options = with_values(options, {"scope.votes": 0.0}) if method == "treaderxml" else options
    for old, new in values.items():
        read = current_options(with_values(options, {path: old}))
        assert value_at(read, path) == new
        assert current_options(read) == read == create_method(method, read).options.plain()
        assert with_values(read, {path: value_at(options, path)}) == options  # nothing else changed


@pytest.mark.parametrize(
    ("variant", "dense", "expected"),
    [("paper", None, ("masked", None)), ("fixed", 9, ("masked", 9)), ("code", None, ("read", 2000))],
)
def test_variants_of_a_bilstm_are_read_as_padding_and_a_dense_layer(
    variant: str, dense: int | None, expected: tuple[str, int | None]
) -> None:
    recall = create_method("xbert", {"recalls": [{"kind": "bilstm"}]}).options.recalls[0].plain()
    del recall["padding"]
    options = {"recalls": [{**recall, "variant": variant, "dense": dense}]}
    (read,) = create_method("xbert", current_options(options)).options.recalls
    assert (read.padding, read.dense) == expected


def test_a_model_with_old_options_gives_the_same_as_before(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    data = tiny()
    options = {"encoder": {"vectors": {"width": 8}}, "training": {"epochs": 1}, "tree": {"max_leaf": 3}}
    model = create_method("xt", options, {"vectors": {"weighting": "by_label_count"}}).fit(data.train)
    model.save(tmp_path / "new")
    manifest = Folder(tmp_path / "new", MODEL).manifest
    old: dict[str, Any] = {**manifest, "options": with_values(manifest["options"], {"vectors.weighting": "code"})}
    with write_folder(tmp_path / "old", MODEL) as writer:
        for name in old.pop("files"):
            shutil.copy(tmp_path / "new" / name, writer.path / name)
        writer.manifest |= {key: value for key, value in old.items() if key not in {"format", "kind"}}
    opened = load_model(tmp_path / "old")
    assert opened.options == model.options
    np.testing.assert_array_equal(opened.top_k(data.test, 3).scores, model.top_k(data.test, 3).scores)
