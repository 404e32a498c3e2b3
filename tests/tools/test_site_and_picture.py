"""The tools behind the pages: links that leave docs/, tables, and the picture."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOME = "https://example.org/longtail"


@pytest.fixture(autouse=True)
def _tools_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


def rewritten(markdown: str, page: str) -> str:
    pytest.importorskip("mkdocs", reason="pip install 'longtail[docs]'")
    hooks: Any = importlib.import_module("docs_hooks")
    file = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    return str(hooks.on_page_markdown(markdown, page=file, config=SimpleNamespace(repo_url=HOME), files=None))


@pytest.mark.parametrize(
    "page, link, expected",
    [
        ("methods/lightxml.md", "../../benchmarks/README.md", "../benchmarks.md"),
        ("methods/linear.md", "../../ARCHITECTURE.md#rooms", "../architecture.md#rooms"),
        ("tasks/tag-a-csv.md", "../../examples", "../examples.md"),
        ("results.md", "../LICENSE", f"{HOME}/blob/main/LICENSE"),
        ("contributing.md", "docs/release.md", "release.md"),
        ("benchmarks.md", "../docs/ablations.md", "ablations.md"),
        ("index.md", "tasks/gpu.md#will-it-fit", "tasks/gpu.md#will-it-fit"),
        ("index.md", "tasks/no-such-page.md", "tasks/no-such-page.md"),
    ],
)
def test_links_lead_to_the_page_of_a_file_or_into_the_repository(page: str, link: str, expected: str) -> None:
    assert rewritten(f"see [this]({link}).", page) == f"see [this]({expected})."


def test_links_in_code_stay() -> None:
    text = "`[a](../LICENSE)`\n\n```\n[a](../LICENSE)\n```\n"
    assert rewritten(text, "results.md") == text


def test_every_example_is_on_the_page_of_examples() -> None:
    pytest.importorskip("mkdocs", reason="pip install 'longtail[docs]'")
    page = importlib.import_module("docs_hooks").examples_page()
    assert all(path.read_text() in page for path in (ROOT / "examples").glob("*.py"))


def test_the_picture_has_a_point_for_every_system_that_was_measured_inside_its_frame() -> None:
    drawing = importlib.import_module("make_picture")
    rows = json.loads(drawing.RESULTS.read_text())
    shown = {panel.data for panel in drawing.PANELS}
    rows = [row for row in rows if row["data"] in shown and row["system"] not in drawing.LEFT_OUT]
    svg = ElementTree.fromstring(drawing.picture())
    points = [node for node in svg.iter() if node.tag.endswith("circle")]
    legend = 2
    assert len(points) == len(rows) + legend
    assert all(
        0 < float(node.attrib["cx"]) < drawing.WIDTH and 0 < float(node.attrib["cy"]) < drawing.HEIGHT
        for node in points
    )
    assert not re.search(r"(?:href|url\()", drawing.picture())  # shown as an image, it can fetch nothing


def test_tables_of_results_keep_what_stands_around_them() -> None:
    results = importlib.import_module("make_results")
    page = results.page(f"before\n{results.START}old\n{results.END}after\n")
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page
    assert "### eurlex57k" in page
