"""What the pages say is true: their commands and snippets run, generated parts are current, links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import longtail
from longtail.data.formats import FORMATS
from longtail.methods import create_method
from longtail.methods.base import METHODS
from longtail.presets import describe_preset, preset_names

slow = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
LINKING = [*PAGES, *sorted(set(ROOT.glob("*.md")) - set(PAGES)), ROOT / "benchmarks" / "README.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
SUBJECTS = ("tag-a-csv", "review", "vocabulary", "compare", "gpu", "plug-in")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(*command: str, cwd: Path) -> str:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def made_by(tool: str, call: str) -> str:
    code = f"import sys; sys.path.insert(0, 'tools'); import {tool}; sys.stdout.write({tool}.{call})"
    return run(sys.executable, "-c", code, cwd=ROOT)


def install_entry_points(package: Path) -> None:
    """Leave what `pip install` would leave of the package's entry points, where commands that run there find it."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    facts = package / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")


def anchors(page: Path) -> set[str]:
    """What `page#…` can point to: headings, as MkDocs and GitHub name them, and anchors that are written out."""
    text = CODE.sub(lambda code: "" if code[0].startswith(("```", " ")) else code[0], page.read_text())
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_commands_and_snippets_of_a_page_work_in_their_order(page: Path, tmp_path: Path) -> None:
    for kind, name, content in BLOCK.findall(page.read_text()):
        if name:
            (tmp_path / name).write_text(content)
        if name == "pyproject.toml":
            install_entry_points(tmp_path)
        elif kind == "python":
            run(sys.executable, "-c", content, cwd=tmp_path)
        elif kind == "console":
            for line in content.splitlines():
                program, *_ = line.removeprefix("$ ").split()
                assert program == "longtail"
                command = line.removeprefix("$ longtail ").replace('"', "'")
                run("sh", "-c", f'"{sys.executable}" -m longtail.cli.main {command}', cwd=tmp_path)


@pytest.mark.parametrize("task", SUBJECTS)
def test_a_page_about_a_task_shows_something_that_runs(task: str) -> None:
    kinds = {kind for kind, _, _ in BLOCK.findall((DOCS / "tasks" / f"{task}.md").read_text())}
    assert kinds & {"console", "python"}


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_to_files_and_to_places_in_them(page: Path) -> None:
    links = LINK.findall(CODE.sub("", page.read_text()))
    assert not [path for path, _ in links if not (page.parent / path).exists()]
    pages = {(page.parent / path if path else page, anchor) for path, anchor in links if anchor}
    assert not [f"{target}#{anchor}" for target, anchor in pages if anchor not in anchors(target)]


def test_the_readme_is_short_and_shows_the_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert "docs/pictures/accuracy-and-time.svg" in text


def test_there_are_five_short_examples() -> None:
    assert len(EXAMPLES) == 5
    assert all(len(example.read_text().splitlines()) < 40 for example in EXAMPLES)


@slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_shows_something(example: Path, tmp_path: Path) -> None:
    assert run(sys.executable, str(example), cwd=tmp_path).strip()


def test_the_page_of_commands_is_current() -> None:
    page = (DOCS / "cli.md").read_text()
    assert made_by("make_cli_docs", "page()") == page, "run python tools/make_cli_docs.py"


def test_the_tables_of_results_are_the_results() -> None:
    page = (DOCS / "results.md").read_text()
    made = made_by("make_results", "page(make_results.PAGE.read_text())")
    assert made == page, "run python tools/make_results.py"


def test_the_published_tables_are_those_of_the_papers() -> None:
    page = (DOCS / "published.md").read_text()
    made = made_by("make_published", "page(make_published.PAGE.read_text())")
    assert made == page, "run python tools/make_published.py"


def test_the_picture_shows_the_results() -> None:
    picture = (DOCS / "pictures" / "accuracy-and-time.svg").read_text()
    assert made_by("make_picture", "picture()") == picture, "run python tools/make_picture.py"


def readme_row(method: str) -> str:
    """The row of the README's table that says when to choose a method."""
    [line] = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(f"| [`{method}`]")]
    return line


def results_of(path: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / path).read_text())


@pytest.mark.parametrize(("method", "system"), [("linear", "longtail-own-features"), ("linear/fast", "longtail-fast")])
def test_the_readme_names_figures_of_linear_that_were_measured(method: str, system: str) -> None:
    row = results_of(f"linear/eurlex57k/{system}.json")
    figures = {f"{100 * row['accuracy']['all'][metric]:.1f}" for metric in ("P@1", "nDCG@5")}
    figures.add(f"{row['measured']['train_s']:.0f} s")
    assert not [figure for figure in figures if figure not in readme_row(method)]


def test_the_readme_names_figures_of_other_methods_that_were_measured() -> None:
    xbert = results_of("neural/accuracy.json")["results"]["xbert"]
    figures = [f"{xbert['P@1']:.1f}", f"{xbert['nDCG@5']:.1f}", f"{xbert['train_s']:.0f} s"]
    assert not [figure for figure in figures if figure not in readme_row("xbert")]
    lexical = results_of("unseen_labels.json")["eurlex57k"]
    share = lexical["unseen"]["R@20"]["all"]["all"]["value"]
    figures = [f"{100 * share:.0f} %", f"{lexical['whole']['train_cpu_s']:.0f} s"]
    assert not [figure for figure in figures if figure not in readme_row("lexical")]


def test_the_help_names_every_format_and_every_option_has_help() -> None:
    page = (DOCS / "cli.md").read_text()
    assert all(name in page.split("do not show it: ")[1].split(".\n")[0] for name in FORMATS.names())
    assert not [line for line in page.splitlines() if line.startswith("- ") and line.rstrip().endswith(":")]


def test_the_pages_name_every_format_and_preset() -> None:
    assert all(f"`{name}`" in (DOCS / "tasks" / "tag-a-csv.md").read_text() for name in FORMATS.names())
    for method in {name.partition("/")[0] for name in preset_names()}:
        page = (DOCS / "methods" / f"{method}.md").read_text()
        assert not [name for name in preset_names(method) if f"`{name}`" not in page]


def options_named_on(page: Path) -> set[str]:
    """What the column `option` of its tables names."""
    names: set[str] = set()
    for header, rows in re.findall(r"^(\|.*)\n\|[-| ]+\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE):
        if header.rstrip("| ").endswith("option"):
            names.update(name for row in rows.splitlines() for name in re.findall("`([^`]+)`", row.split("|")[-2]))
    return names


def has_option(options: object, path: list[str]) -> bool:
    if not path:
        return True
    if isinstance(options, list | tuple):
        return path[0] == "*" and any(has_option(member, path[1:]) for member in options)
    return isinstance(options, dict) and path[0] in options and has_option(options[path[0]], path[1:])


@pytest.mark.parametrize("method", METHODS.names())
def test_a_method_has_a_page_that_names_options_that_exist(method: str) -> None:
    if not METHODS.get(method).__module__.startswith("longtail.methods"):
        pytest.skip("a plug-in of the tests")
    named = options_named_on(DOCS / "methods" / f"{method}.md")
    choices = [create_method(name).options.plain() for name in {method, *preset_names(method)}]
    assert not [name for name in named if not any(has_option(options, name.split(".")) for options in choices)]


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "api.md").read_text()
    shown = set(re.findall(r"^::: longtail\.(\w+)$", page, re.MULTILINE))
    public = {name for name in dir(longtail) if not name.startswith("_")}
    assert shown == public, "docs/api.md has one line `::: longtail.NAME` for each public name"


@slow
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_parses_and_says_what_it_is(name: str) -> None:
    assert create_method(name).options
    assert len(describe_preset(name)) > 10


@slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install 'longtail[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not [line for line in ran.stderr.splitlines() if line.startswith(("WARNING", "ERROR"))]
    asset = re.compile(
        r"<(?:script|link|img|iframe|source|video|object)\b[^>]*?\b(?:src|href|data)=[\"']?(?:https?:)?//"
    )
    built = {str(page.relative_to(tmp_path)): page.read_text() for page in tmp_path.rglob("*.html")}
    assert {"index.html", "api.html", "changelog.html", "methods/xbert.html"} <= set(built)
    assert not [page for page, text in built.items() if asset.search(text)]
    style = "".join(sheet.read_text() for sheet in tmp_path.rglob("*.css"))
    assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style)


CITATION = re.compile(r"(docs/[\w./-]+\.md)((?:(?:, | and )?#[\w-]+)*)")
PRIVATE = re.compile(
    r"(?<![\w/-])(?:methods|recipes|tables|limits|peers|accuracy|house|desk)\.md"  # pages that are not here
    r"|(?<![\w-])D-\d+\b|(?<![\w.])[A-I]\.\d{1,2}(?:\.\d+)?(?![\w(])"  # and their numbers: D-15, B.2, C.12.4
)
SOURCES = [
    path
    for folder in ("src", "tests", "benchmarks", "examples", "tools")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".toml", ".sh", ".md"}
    and path != Path(__file__)
    and "work" not in path.relative_to(ROOT).parts
]


def test_every_citation_in_the_code_leads_to_a_page_and_a_place_in_it() -> None:
    cited = {
        (page, anchor, name_of(path))
        for path in SOURCES
        for page, places in CITATION.findall(path.read_text())
        for anchor in re.findall(r"#([\w-]+)", places) or [""]
    }
    assert len({page for page, _, _ in cited}) > 5
    assert not {(page, path) for page, _, path in cited if not (ROOT / page).is_file()}
    known = {page: anchors(ROOT / page) for page, _, _ in cited}
    assert not {(page, anchor, path) for page, anchor, path in cited if anchor and anchor not in known[page]}


def test_no_file_cites_a_page_outside_the_repository() -> None:
    lines = [(name_of(path), line) for path in SOURCES for line in path.read_text().splitlines()]
    assert not [(path, line) for path, line in lines if PRIVATE.search(line)], "cite docs/methods/PAGE.md#anchor"
