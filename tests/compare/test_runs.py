"""Runs of a comparison: what is kept, what is done again, and what goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longtail.compare import RunFolder, choose_parts, claim_folder, do_run
from longtail.data.dataset import Dataset, as_table
from longtail.errors import ConfigError, DataError, LongtailError
from longtail.methods import create_method, load_model
from longtail.run.local import LocalEngine
from longtail.run.progress import Advance
from longtail.run.run import Run


class Steps:
    """Remembers the names of steps; ends at one of them as a killed process would."""

    def __init__(self, deadly: str = "") -> None:
        self.names: list[str] = []
        self.deadly = deadly

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        self.names.append(name)
        if name == self.deadly:
            raise KeyboardInterrupt
        yield lambda amount, note="": None


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(splits=("train", "dev", "test"))


@pytest.fixture
def run(data: Dataset, tmp_path: Path) -> Callable[..., Steps]:
    """Does a run and gives its steps: `run(split="test", tail_weight=1.0, k=5)`."""

    def do(split: str = "dev", k: int = 5, steps: Steps | None = None, **options: object) -> Steps:
        model, steps = create_method("linear", options), steps or Steps()
        folder = RunFolder(tmp_path, model, data.train, data.split(split))
        if folder.result(k) is None:
            do_run(folder, facts={"name": "tiny"}, k=k, run=Run(LocalEngine(1), steps))
        return steps

    return do


def folder_of(data: Dataset, out: Path, split: str = "dev", **options: object) -> RunFolder:
    return RunFolder(out, create_method("linear", options), data.train, data.split(split))


def test_a_run_leaves_a_model_lists_and_what_they_took(
    run: Callable[..., Steps], data: Dataset, tmp_path: Path
) -> None:
    assert "label weights" in run().names
    folder = folder_of(data, tmp_path)
    found = folder.result(5)
    assert found is not None
    model = load_model(folder.model)
    expected = model.top_k(data.dev, 5)
    assert np.array_equal(found.lists.labels, expected.labels)
    assert found.lists.scores.tobytes() == expected.scores.tobytes()
    assert found.costs.train_s > 0
    assert (found.costs.sittings, found.costs.threads, found.costs.gpu_peak_bytes) == (1, 1, 0)
    assert found.costs.peak_memory_bytes is None or found.costs.peak_memory_bytes > 10e6
    assert found.predict_s > 0
    assert found.model_bytes == sum(f.stat().st_size for f in folder.model.iterdir() if f.name != "manifest.json")
    assert model.facts_["name"] == "tiny"
    assert sorted(path.name for path in folder.path.iterdir() if not path.name.startswith("lists")) == ["model"]


def test_what_was_done_is_not_done_again(run: Callable[..., Steps]) -> None:
    run()
    assert run().names == []
    assert "label weights" not in run(split="test").names  # the same model, other texts
    assert "label weights" not in run(k=8).names  # longer lists
    assert "label weights" not in run(tail_weight=1.0).names  # nothing is trained for it
    assert "label weights" in run(seed=1).names
    assert "label weights" in run(search={"beam": 3}).names


def test_a_tail_weight_has_lists_of_its_own_and_the_model_none(
    run: Callable[..., Steps], data: Dataset, tmp_path: Path
) -> None:
    run(tail_weight=3.0)
    run()
    plain, weighted = (folder_of(data, tmp_path, tail_weight=weight) for weight in (0.0, 3.0))
    assert plain.model == weighted.model
    assert load_model(plain.model).options.tail_weight == 0
    assert not np.array_equal(plain.result(5).lists.scores, weighted.result(5).lists.scores)  # type: ignore[union-attr]


def test_lists_that_are_shorter_or_damaged_are_none(run: Callable[..., Steps], data: Dataset, tmp_path: Path) -> None:
    run()
    folder = folder_of(data, tmp_path)
    assert folder.result(6) is None
    [lists] = folder.path.glob("lists-*")
    content = bytearray((lists / "lists.safetensors").read_bytes())
    content[-1] ^= 1
    (lists / "lists.safetensors").write_bytes(content)
    assert folder.result(5) is None
    assert "label weights" not in run().names
    assert folder.result(5) is not None


def test_a_model_that_is_damaged_is_trained_again(run: Callable[..., Steps], data: Dataset, tmp_path: Path) -> None:
    run()
    folder = folder_of(data, tmp_path)
    victim = max(folder.model.glob("*.safetensors"), key=lambda file: file.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-8])
    shutil.rmtree(next(folder.path.glob("lists-*")))
    assert "label weights" in run().names
    assert folder.result(5) is not None


def test_a_run_that_was_killed_goes_on_and_its_sittings_are_counted(
    run: Callable[..., Steps], data: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(steps=Steps(deadly="label weights"))
    folder = folder_of(data, tmp_path)
    assert folder.costs() is None
    first = json.loads((folder.path / "spent.json").read_text())
    left = folder.path / ".model.1.tmp"
    left.mkdir()
    again = run()
    assert "features" not in " ".join(again.names[:1])
    costs = folder.costs()
    assert costs is not None
    assert costs.sittings == 2
    assert costs.train_s > first["train_s"]
    assert not left.exists()
    assert not (folder.path / "spent.json").exists()
    assert not folder.work.exists()


def test_columns_that_a_method_does_not_read_make_no_other_run(data: Dataset, tmp_path: Path) -> None:
    def wider(column: str) -> RunFolder:
        texts = as_table({"text": data.train.texts["text"], column: ["x"] * len(data.train)})
        return RunFolder(tmp_path, create_method("linear"), replace(data.train, texts=texts), data.dev)

    plain = folder_of(data, tmp_path).path
    assert wider("date").path == plain
    assert wider("title").path != plain  # which linear reads where there is one


def test_parts_are_dev_or_held_out_and_never_train(data: Dataset, tiny: Callable[..., Dataset]) -> None:
    bare = tiny(splits=("train", "test"))
    assert choose_parts(data, None, 0)[1:] == ("dev", data.dev)
    assert choose_parts(data, "test", 0)[1:] == ("test", data.test)
    drawn, name, part = choose_parts(bare, None, 3)
    assert name == "dev (held out)"
    assert (len(drawn.train), len(part)) == (54, 6)
    assert part.fingerprint == bare.hold_out(seed=3).dev.fingerprint
    assert choose_parts(bare, "dev", 3)[2].fingerprint == part.fingerprint
    assert len(choose_parts(bare, "test", 0)[0].train) == 60
    with pytest.raises(DataError, match="must not be train"):
        choose_parts(data, "train", 0)
    with pytest.raises(DataError, match="has no split 'tset'"):
        choose_parts(data, "tset", 0)


def test_a_folder_is_of_one_data_set(data: Dataset, tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    claim_folder(tmp_path / "new" / "out", data.train)
    claim_folder(tmp_path / "new" / "out", data.train)
    with pytest.raises(ConfigError, match="comparison on other training texts than these 60"):
        claim_folder(tmp_path / "new" / "out", tiny(seed=9).train)
    with pytest.raises(ConfigError, match="exists and is not a comparison"):
        claim_folder(tmp_path / "new", data.train)
    (tmp_path / "file").write_text("somebody's")
    with pytest.raises(ConfigError, match="exists and is not a comparison"):
        claim_folder(tmp_path / "file", data.train)
    with pytest.raises(LongtailError, match="cannot write"):
        claim_folder(tmp_path / "file" / "out", data.train)
