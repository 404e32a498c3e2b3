"""`torchrun … longtail train`: several processes, one model, one voice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import load_dataset
from longtail.errors import ConfigError
from longtail.methods import create_method, load_model
from longtail.persist import Folder
from longtail.run.processes import is_main_process
from longtail.run.stages import FolderStages

pytestmark = pytest.mark.slow

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def test_two_processes_save_the_model_of_one_and_only_the_first_talks(
    data: Path, quick: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    options = quick("lightxml", epochs=2, batch_size=15, validation=0.2, checkpoint_s=1e-9)
    options |= {"dropout": 0.0, "encoders": [{**options["encoders"][0], "dropout": 0.0}]}
    settings = [part for name, value in options.items() for part in ("--set", f"{name}={_toml(value)}")]
    arguments = [str(data), "--out", str(tmp_path / "two"), "--method", "lightxml", "--json", "--threads", "1"]
    command = [*TORCHRUN, "-m", "longtail.cli.main", "train", *arguments, *settings]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["n_labels"] == 8  # one object: the other process is silent
    assert ended.stderr.count("training lightxml on") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]

    create_method("lightxml", options).fit(load_dataset(str(data)).train, threads=1).save(tmp_path / "one")
    one, two = (Folder(tmp_path / name, "model") for name in ("one", "two"))
    assert load_model(tmp_path / "two").predict(["word1a word1b word1c"], 1)
    for name, values in one.arrays("member-0").items():
        assert np.allclose(values, two.arrays("member-0")[name], atol=1e-5), name
    assert one.manifest["member-0"]["training"] == two.manifest["member-0"]["training"]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + "}"
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


@pytest.mark.parametrize(
    ("environment", "main"),
    [({}, True), ({"RANK": "0", "WORLD_SIZE": "2"}, True), ({"RANK": "1", "WORLD_SIZE": "2"}, False),
     ({"RANK": "1", "WORLD_SIZE": "1"}, True)],
)  # fmt: skip
def test_the_environment_tells_which_process_is_the_main_one(
    environment: dict[str, str], main: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_main_process() == main


def test_a_process_that_is_not_the_main_one_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = FolderStages.open(tmp_path / "work", {"key": 1}, resume=False).within("member-0")
    main.put("training", lambda writer: writer.manifest.update(step=3))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    other = FolderStages.open(tmp_path / "work", {"key": 1}, resume=False).within("member-0")
    assert other.get("training").manifest["step"] == 3
    assert other.get("tokens") is None
    other.put("training", lambda writer: writer.manifest.update(step=4))
    assert other.get("training").manifest["step"] == 3
    built = other.arrays("tokens", lambda: {"ids": np.arange(3)})
    assert built[1]
    assert not (tmp_path / "work" / "member-0-tokens").exists()
    other.close()
    assert (tmp_path / "work").is_dir()


def test_a_process_that_is_not_the_main_one_saves_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = create_method("linear").fit(["red apple", "grey stone"], [["fruit"], ["rock"]])
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("method", ["linear", "knn", "lexical", "stack", "auto"])
def test_methods_that_several_processes_cannot_train_say_so(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=f"method {method} must be trained by one process, got 2"):
        create_method(method).fit(["red apple", "grey stone"], [["fruit"], ["rock"]])
