"""What people install: the wheel, alone in an empty environment, tags a text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SIGNS_OF_NO_NETWORK = ("No matching distribution", "NewConnectionError", "name resolution", "Connection refused")
LARGEST_MB = 2.5


def run(*command: object, cwd: Path) -> str:
    """Standard output of a command that must succeed; skips where it fails for want of a network."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ran = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode and any(sign in ran.stderr for sign in SIGNS_OF_NO_NETWORK):
        pytest.skip("packages cannot be fetched: no network")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", source, cwd=tmp_path)
    [wheel] = (tmp_path / "dist").iterdir()
    packed = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size < LARGEST_MB * 1e6
    assert {
        "longtail/py.typed",
        "longtail/report/page.css",
        "longtail/published/results.toml",
        "longtail/data/bundled/debtags-sample/LICENSE",
    } <= set(packed)
    assert not [name for name in packed if "tests" in name or "shared" in name]

    home = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    install = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    run(*install, "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    found = json.loads(
        run(programs / "longtail", "train", "debtags-sample", "--out", "m", "--json", "-q", cwd=tmp_path)
    )
    assert found["n_labels"] == 394
    tagged = json.loads(run(programs / "longtail", "predict", "m", "--text", "a text editor for gnome", cwd=tmp_path))
    assert "use::editing" in {label["id"] for label in tagged["labels"]}
    code = "import longtail; print(longtail.load_model('m').predict(['play chess'], k=1)[0][0].id)"
    assert run(programs / "python", "-c", code, cwd=tmp_path).strip() == "use::gameplaying"
