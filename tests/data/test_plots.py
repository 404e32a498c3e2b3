"""Pictures of an examination."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from longtail.data.dataset import Dataset, Split
from longtail.data.doctor import examine
from longtail.data.plots import plot_examination
from longtail.data.vocabulary import Vocabulary
from longtail.errors import LongtailError, MissingExtraError

PNG = b"\x89PNG\r\n\x1a\n"


def test_both_pictures_are_written(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = plot_examination(examine(tiny()), tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["label_frequency.png", "text_lengths.png"]
    assert all(path.read_bytes().startswith(PNG) for path in paths)


def test_what_has_no_data_is_not_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    vocabulary = Vocabulary.of(["a"])
    empty = Dataset("empty", {"train": Split.of([], [], vocabulary)}, vocabulary)
    unlabelled = Dataset("x", {"train": Split.of(["some words", ""], [[], []], vocabulary)}, vocabulary)
    assert plot_examination(examine(empty), tmp_path) == []
    assert [path.name for path in plot_examination(examine(unlabelled), tmp_path)] == ["text_lengths.png"]


def test_a_folder_that_cannot_be_made_is_an_error(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("")
    with pytest.raises(LongtailError, match="cannot write pictures"):
        plot_examination(examine(tiny()), tmp_path / "file" / "folder")


def test_without_matplotlib_the_error_says_what_to_install(
    tiny: Callable[..., Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[plots\]'"):
        plot_examination(examine(tiny()), tmp_path)


def test_matplotlib_is_not_loaded_before_a_picture_is_asked_for() -> None:
    code = "import sys, longtail.data.plots, longtail.data.doctor; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
