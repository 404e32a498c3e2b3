"""What the pages say is true: their commands and snippets run, generated parts are current, presets parse."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from longtail.data.formats import FORMATS
from longtail.methods import create_method
from longtail.presets import describe_preset, preset_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command: str, cwd: Path) -> str:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def made_by(tool: str, call: str) -> str:
    code = f"import sys; sys.path.insert(0, 'tools'); import {tool}; sys.stdout.write({tool}.{call})"
    return run(sys.executable, "-c", code, cwd=ROOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_commands_and_snippets_of_a_page_work_in_their_order(page: Path, tmp_path: Path) -> None:
    for kind, name, content in BLOCK.findall(page.read_text()):
        if kind == "csv":
            (tmp_path / name).write_text(content)
        elif kind == "python":
            run(sys.executable, "-c", content, cwd=tmp_path)
        elif kind == "console":
            for line in content.splitlines():
                program, *_ = line.removeprefix("$ ").split()
                assert program == "longtail"
                command = line.removeprefix("$ longtail ").replace('"', "'")
                run("sh", "-c", f'"{sys.executable}" -m longtail.cli.main {command}', cwd=tmp_path)


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_there_are_five_short_examples() -> None:
    assert len(EXAMPLES) == 5
    assert all(len(example.read_text().splitlines()) < 40 for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_shows_something(example: Path, tmp_path: Path) -> None:
    assert run(sys.executable, str(example), cwd=tmp_path).strip()


def test_the_page_of_commands_is_current() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert made_by("make_cli_docs", "page()") == page, "run python tools/make_cli_docs.py"


def test_the_tables_of_the_readme_are_the_results() -> None:
    page = (ROOT / "README.md").read_text()
    made = made_by("make_readme_tables", "page(make_readme_tables.PAGE.read_text())")
    assert made == page, "run python tools/make_readme_tables.py"


def test_the_help_names_every_format_and_every_option_has_help() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert all(name in page.split("do not tell: ")[1].split(".\n")[0] for name in FORMATS)
    assert not [line for line in page.splitlines() if line.startswith("- ") and line.rstrip().endswith(":")]


def test_the_pages_name_every_format_and_preset() -> None:
    assert all(f"`{name}`" in (ROOT / "docs" / "start.md").read_text() for name in FORMATS)
    for method in {name.partition("/")[0] for name in preset_names()}:
        page = (ROOT / "docs" / f"{method}.md").read_text()
        assert not [name for name in preset_names(method) if f"`{name}`" not in page]


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_parses_and_says_what_it_is(name: str) -> None:
    assert create_method(name).options
    assert len(describe_preset(name)) > 10
