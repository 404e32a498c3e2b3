from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from longtail.errors import ConfigError, LongtailError
from longtail.persist import Folder, FolderWriter
from longtail.run.stages import NO_STAGES, FolderStages, claimed

KEY = {"options": {"seed": 1, "pair": (1, 2)}, "data": "abc"}


class Counting:
    """Builds arrays and counts how often it had to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Any]:
        self.times += 1
        return {"a": np.arange(5), "b": np.ones((2, 2), np.float32)}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "model.work"


def test_a_stage_is_built_once_and_found_again_by_a_run_that_resumes(work: Path) -> None:
    build = Counting()
    stages = FolderStages.open(work, KEY, resume=False)
    made, fresh = stages.arrays("tree", build)
    assert fresh
    again, fresh = FolderStages.open(work, KEY, resume=True).arrays("tree", build)
    assert not fresh
    assert build.times == 1
    for name, array in made.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype


def test_without_resume_everything_is_built_anew(work: Path) -> None:
    build = Counting()
    for _ in range(2):
        FolderStages.open(work, KEY, resume=False).arrays("tree", build)
    assert build.times == 2


def test_nothing_to_resume_is_a_fresh_start(work: Path) -> None:
    assert FolderStages.open(work, KEY, resume=True).arrays("tree", Counting())[1]


def test_stages_may_hold_tables_too(work: Path) -> None:
    def write(writer: FolderWriter, names: list[str]) -> None:
        writer.table("names", pa.table({"name": names}))

    def read(folder: Folder) -> list[str]:
        return list(folder.table("names")["name"].to_pylist())

    for fresh in (True, False):
        stages = FolderStages.open(work, KEY, resume=True)
        assert stages.keep("names", lambda: ["x", "y"], write, read) == (["x", "y"], fresh)


def test_names_within_a_prefix_do_not_meet_others(work: Path) -> None:
    stages = FolderStages.open(work, KEY, resume=False)
    for number, place in enumerate((stages, stages.within("member-0"), stages.within("member-0").within("x"))):
        place.arrays("tree", lambda number=number: {"n": np.array([number])})  # type: ignore[misc]
    for number, place in enumerate((stages, stages.within("member-0"), stages.within("member-0").within("x"))):
        assert place.arrays("tree", Counting())[0]["n"].tolist() == [number]


def test_other_data_or_options_are_refused(work: Path) -> None:
    FolderStages.open(work, KEY, resume=False).arrays("tree", Counting())
    with pytest.raises(ConfigError, match="was begun with other data or options; train without `resume`"):
        FolderStages.open(work, {**KEY, "data": "other"}, resume=True)
    assert not FolderStages.open(work, KEY, resume=True).arrays("tree", Counting())[1]  # and nothing was lost


@pytest.mark.parametrize("content", ["", '{"options": {"se'])
def test_a_key_that_was_cut_off_by_a_kill_is_a_fresh_start(work: Path, content: str) -> None:
    FolderStages.open(work, KEY, resume=False).arrays("tree", Counting())
    (work / "key.json").write_text(content)
    assert FolderStages.open(work, KEY, resume=True).arrays("tree", Counting())[1]


@pytest.mark.parametrize("resume", [True, False])
def test_somebody_elses_folder_is_never_cleared(work: Path, resume: bool) -> None:
    work.mkdir()
    (work / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="exists and is not a work folder of longtail; choose another place"):
        FolderStages.open(work, KEY, resume)
    assert (work / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("resume", [True, False])
def test_a_file_is_never_cleared(work: Path, resume: bool) -> None:
    work.write_text("x")
    with pytest.raises(LongtailError):
        FolderStages.open(work, KEY, resume)
    with pytest.raises(LongtailError, match="cannot use the work folder"):
        FolderStages.open(work / "below", KEY, resume)
    assert work.read_text() == "x"


def test_an_empty_folder_may_be_used(work: Path) -> None:
    work.mkdir()
    assert FolderStages.open(work, KEY, resume=False).arrays("tree", Counting())[1]


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    "harm", [damage, Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-3])], ids=["bit", "lost", "short"]
)
@pytest.mark.parametrize("file", ["arrays.safetensors", "manifest.json"])
def test_a_damaged_stage_is_built_again(work: Path, file: str, harm: Callable[[Path], Any]) -> None:
    build = Counting()
    expected, _ = FolderStages.open(work, KEY, resume=False).arrays("tree", build)
    harm(work / "tree" / file)
    found, fresh = FolderStages.open(work, KEY, resume=True).arrays("tree", build)
    assert fresh
    assert build.times == 2
    np.testing.assert_array_equal(found["a"], expected["a"])
    assert not FolderStages.open(work, KEY, resume=True).arrays("tree", build)[1]


def test_a_stage_that_fails_leaves_no_trace(work: Path) -> None:
    stages = FolderStages.open(work, KEY, resume=False)

    def fail() -> dict[str, Any]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        stages.arrays("tree", fail)
    assert [file.name for file in work.iterdir()] == ["key.json"]
    assert stages.arrays("tree", Counting())[1]


def test_closing_removes_the_folder(work: Path) -> None:
    stages = FolderStages.open(work, KEY, resume=False)
    stages.arrays("tree", Counting())
    stages.close()
    assert not work.exists()


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_whose_removal_was_killed_is_used_again(
    work: Path, resume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file is the last that goes: a work folder, or nothing."""
    for n_removed in range(14):
        stages = FolderStages.open(work, KEY, resume)
        stages.arrays("tree", Counting())
        stages.arrays("weights", Counting())
        with monkeypatch.context() as patched:
            left = iter(range(n_removed))
            for function in ("unlink", "rmdir"):
                patched.setattr(os, function, killing(getattr(os, function), left))
            with suppress(SystemExit):
                stages.close()
        assert FolderStages.open(work, KEY, resume).arrays("weights", Counting())[0]["a"].tolist() == [0, 1, 2, 3, 4]


def killing(remove: Callable[..., None], left: Iterator[int]) -> Callable[..., None]:
    """Return a function that removes as often as `left` allows and then dies."""

    def removing(*arguments: Any, **more: Any) -> None:
        if next(left, None) is None:
            raise SystemExit
        remove(*arguments, **more)

    return removing


def test_a_folder_in_use_is_refused_and_not_removed(work: Path) -> None:
    with claimed(work):
        stages = FolderStages.open(work, KEY, resume=False)
        stages.arrays("tree", Counting())
        busy = pytest.raises(LongtailError, match=r"model\.work is in use by another training; wait until that ends")
        with busy, claimed(work):
            pass
        stages.close()
        assert (work / "tree").exists()
    stages.close()
    assert not list(work.parent.iterdir())


def test_no_stages_keep_nothing() -> None:
    build = Counting()
    for _ in range(2):
        assert NO_STAGES.within("x").arrays("tree", build)[1]
    assert build.times == 2
