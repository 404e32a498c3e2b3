"""Files around the code: one version, one address, workflows that call targets that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import longtail

yaml = pytest.importorskip("yaml", reason="pip install 'longtail[docs]'")
ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
YAML = sorted({*ROOT.glob("*.yml"), *ROOT.glob(".*.yaml"), *(ROOT / ".github").rglob("*.yml"), ROOT / "CITATION.cff"})
TARGET = re.compile(r"^([a-z][\w-]*):(?!=)", re.MULTILINE)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_a_yaml_file_parses(path: Path) -> None:
    assert isinstance(read(path), dict)


def test_the_version_is_stated_in_one_place() -> None:
    assert longtail.__version__ == PROJECT["version"]
    assert str(read(ROOT / "CITATION.cff")["version"]) == PROJECT["version"]
    assert not [path for path in (ROOT / "src").rglob("*.py") if re.search("__version__ = ", path.read_text())]


def test_the_address_of_the_project_is_the_same_everywhere() -> None:
    home = PROJECT["urls"]["Source"]
    assert read(ROOT / "mkdocs.yml")["repo_url"] == home
    assert all(address.startswith(home) for address in PROJECT["urls"].values())


def test_the_workflow_covers_every_python_and_system_and_calls_only_targets_that_exist() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    assert {system.partition("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands and all(command.split()[0] == "make" for command in commands)
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert {command.split()[1] for command in commands} <= targets


def test_hooks_run_what_make_check_runs() -> None:
    hooks = [hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert all(hook["language"] == "system" for hook in hooks)  # nothing is fetched
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    programs = {line.split()[0].removeprefix("$(BIN)/") for line in recipe[1].splitlines()}
    assert {Path(hook["entry"].split()[0]).name for hook in hooks} == programs


def test_everything_that_the_docs_need_is_pinned() -> None:
    def key(name: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[ ]", name)[0]).lower()

    pinned = {key(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    extras = PROJECT["optional-dependencies"]
    assert {key(name) for name in [*extras["docs"], *extras["dev"], *PROJECT["dependencies"]]} <= pinned
