"""Model folders of older versions open and give the same lists, or say that they must be trained again."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from longtail.errors import ModelFormatError
from longtail.methods import load_model
from longtail.persist import FORMAT_VERSION, MANIFEST
from longtail.propensity import USUAL

OLD = Path(__file__).parent / "data_files" / "format-1"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.mark.parametrize("name", ["linear", "knn"])
def test_a_model_of_format_1_gives_the_same_lists(name: str, tmp_path: Path) -> None:
    """Made by the last version that wrote format 1: nine labels, `linear` with a tail weight of 0.5."""
    opened = load_model(OLD / name, verify=True)
    expected = EXPECTED["lists"][name]
    opened.save(tmp_path / "new")
    for model in (opened, load_model(tmp_path / "new")):
        found = model.top_k(EXPECTED["texts"], 6)
        ids = np.array([*model.vocabulary_.ids, ""])
        assert ids[found.labels].tolist() == expected["labels"]
        assert [[_exact(score) for score in row] for row in found.scores.tolist()] == expected["scores"]
        named = [[[s.id, s.name] for s in row] for row in model.predict(EXPECTED["texts"], 3)]
        assert named == expected["predicted"]
        assert model.scored_labels_.tolist() == list(range(9))
        assert model.options.propensity == USUAL
    assert json.loads((tmp_path / "new" / MANIFEST).read_text())["format"] == FORMAT_VERSION


def _exact(score: float) -> str | None:
    """Return every bit of a score; None for that of an empty place."""
    return None if math.isinf(score) else score.hex()


def test_an_old_model_with_options_that_are_gone_asks_to_be_trained_again(tmp_path: Path) -> None:
    shutil.copytree(OLD / "linear", tmp_path / "m")
    file = tmp_path / "m" / MANIFEST
    manifest = json.loads(file.read_text())
    manifest["options"]["bygone"] = 3
    del manifest["checksum"]
    checksum = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps(manifest | {"checksum": checksum}))
    with pytest.raises(ModelFormatError, match=r"written by longtail .* \(format 1\).*'bygone'.*train the model again"):
        load_model(tmp_path / "m")
