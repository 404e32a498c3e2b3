"""Exported networks tag as their models do, without longtail; what cannot be exported is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="pip install 'longtail[neural]'")
pytest.importorskip("onnxruntime", reason="pip install 'longtail[onnx]'")
pytest.importorskip("onnxscript", reason="pip install 'longtail[onnx]'")

from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.data.write import write_dataset
from longtail.errors import ConfigError, DataError, LongtailError
from longtail.export.onnx import export_onnx
from longtail.export.parity import TOLERANCE
from longtail.export.runner import Runner
from longtail.labels.edits import LabelEdit
from longtail.methods import create_method, load_model
from longtail.methods.base import Method
from longtail.nn.heads.dense import Dense

pytestmark = pytest.mark.slow
Fit = Callable[..., Method]
ALONE = """
import json, sys
sys.modules["longtail"] = sys.modules["torch"] = sys.modules["transformers"] = None
sys.path.insert(0, ".")
from run import Runner
print(json.dumps(Runner(".").tag(json.loads(sys.argv[1]), k=4)))
"""


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=80, n_labels=12, named=True)


@pytest.fixture(scope="module")
def fit(data: Dataset, quick: Callable[..., dict[str, Any]]) -> Fit:
    """Trains a method quickly, and calibrates it: tiny data are too few for that by themselves."""

    def fitted(name: str, *more: dict[str, Any]) -> Method:
        model = create_method(name.partition(":")[0], quick(name, epochs=8), *more).fit(data.train)
        model.calibrate(model.top_k(data.test, 12), data.test.labels)
        return model

    return fitted


@pytest.fixture(scope="module")
def dense(fit: Fit) -> Method:
    return fit("lightxml")


def test_an_export_tags_as_its_model_does_without_longtail(data: Dataset, dense: Method, tmp_path: Path) -> None:
    dense.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    model.edit_labels(
        LabelEdit(action="rename", label="label1", name="Renamed"),
        LabelEdit(action="retire", label="label2"),
        LabelEdit(action="merge", label="label3", into="label4"),
    )
    written = export_onnx(model, tmp_path / "out", data.test)
    assert written.agreement.n_texts == len(data.test)
    assert written.agreement.largest_difference <= TOLERANCE
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        *("README.md", "config.json", "labels.json", "manifest.json", "model.onnx", "run.py", "tokenizer.json")
    }
    texts = [*data.test.texts["text"].to_pylist(), "", "unknown words"]
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, json.dumps(texts)], cwd=tmp_path / "out", capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found, expected = json.loads(ran.stdout), model.predict(texts, k=4)
    assert [[one["id"] for one in row] for row in found] == [[one.id for one in row] for row in expected]
    assert {one["name"] for row in found for one in row} >= {"Renamed"}
    scores = [[one["score"] for one in row] for row in found]
    assert np.allclose(scores, [[one.score for one in row] for row in expected], atol=TOLERANCE)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["scores_are_probabilities"] and config["agreement"]["n_texts"] == len(data.test)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert all(name in readme for name in ("input_ids", "attention_mask", "scores", "labels", "tokenizer.json"))


@pytest.mark.parametrize("name", ["lightxml:shortlist", "aplc-xlnet", "fasttext", "xml-cnn", "attentionxml"])
def test_networks_of_every_head_are_exported_for_texts_of_any_length(name: str, fit: Fit, tmp_path: Path) -> None:
    model = fit(name)
    export_onnx(model, tmp_path / "out")  # texts of 1 to 256 words, made of words that the model knows
    runner = Runner(tmp_path / "out", threads=1)
    for text in ("", "word1a", "word1a’s word2b-word3c ÀÉ /SEP/ don't " * 4):
        expected = model.predict([text], k=3)[0]
        [found] = runner.tag([text], k=3)
        assert [one["score"] for one in found] == pytest.approx([one.score for one in expected], abs=TOLERANCE)


class Wrong(Dense):
    """Records other scores than it predicts."""

    def recorded_top_k(self, inputs: Any, k: int) -> Any:
        scores, places = super().recorded_top_k(inputs, k)
        return scores * 0.999, places


def test_an_export_with_other_scores_is_refused_and_leaves_the_older_one(
    fit: Fit, data: Dataset, tmp_path: Path
) -> None:
    model = fit("fasttext", {"calibrate": False})
    model.chain_ = type(model.chain_)(())
    head = model.exported_network().network.head
    out = tmp_path / "out"
    export_onnx(model, out, data.test)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    head.__class__ = Wrong
    with pytest.raises(ConfigError, match=r"within 0.0001 of the model's.*nothing was written"):
        export_onnx(model, out, data.test)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    (out / "notes.txt").write_text("mine")
    with pytest.raises(LongtailError, match=r"notes\.txt"):
        export_onnx(model, out, data.test)


def test_the_command_prints_what_8_bit_weights_cost(
    dense: Method, data: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dense.save(tmp_path / "model")
    write_dataset(data, tmp_path / "data")
    words = ["export", str(tmp_path / "model"), str(tmp_path / "data"), "--onnx", str(tmp_path / "out")]
    assert main([*words, "--split", "test", "--int8", "--json", "-q"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["agreement"]["largest_difference"] <= TOLERANCE
    assert said["int8"]["n_texts"] == len(data.test)
    assert abs(said["int8"]["loss"]) < 0.5
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["weights"] == "int8" and config["int8"]["same_lists"] == said["int8"]["same_lists"]
    shutil.rmtree(tmp_path / "out")
    assert main([words[0], words[1], "--onnx", str(tmp_path / "out"), "--int8", "-q"]) == 2
    assert "texts with known labels" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_a_graph_cannot_hold_is_refused_by_name(dense: Method, data: Dataset, tmp_path: Path) -> None:
    linear = create_method("linear/fast").fit(data.train)
    with pytest.raises(ConfigError, match="method linear come from linear models that read TF-IDF; serve it with"):
        export_onnx(linear, tmp_path / "out")
    dense.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    model.chain_ = model.chain_.with_call(tail_weight=0.5)
    with pytest.raises(ConfigError, match="tail_weight"):
        export_onnx(model, tmp_path / "out")
    with pytest.raises(ConfigError, match="at least 5"):
        export_onnx(dense, tmp_path / "out", labels_per_text=1)
    with pytest.raises(DataError, match="a sample must have texts"):
        export_onnx(dense, tmp_path / "out", data.test.take(np.arange(0)))
    assert not (tmp_path / "out").exists()
