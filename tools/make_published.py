"""Put the tables of the papers into docs/published.md: python tools/make_published.py

Everything behind the mark is made from src/longtail/published/results.toml. A test compares, so the page cannot fall
behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from longtail.published import Published, PublishedTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "published.md"
START = "<!-- made by tools/make_published.py -->\n"
UNITS = {"train_h": "hours of training", "predict_ms": "ms per text", "model_gb": "model in GB"}


def page(text: str) -> str:
    """Return the page with today's tables."""
    return text.split(START)[0] + START + "\n".join(_sections(Published.load())) + "\n"


def _sections(papers: Published) -> Iterator[str]:
    """One section per table of a paper; a column for each data set, a row for each system."""
    for source in dict.fromkeys(table.source for table in papers.tables):
        tables = [table for table in papers.tables if table.source == source]
        names = [f"`{table.data}`" if table.data else "data not named" for table in tables]
        columns = " / ".join(UNITS.get(name, name) for name in tables[0].columns)
        yield f"\n### {source}\n"
        yield f"{columns}{f'; gains in per cent over {tables[0].over}' if tables[0].over else ''}\n"
        yield f"| | {' | '.join(names)} |\n|---{'|---' * len(names)}|"
        for system in dict.fromkeys(row.system for table in tables for row in table.rows):
            yield f"| {system} | {' | '.join(_cell(table, system) for table in tables)} |"


def _cell(table: PublishedTable, system: str) -> str:
    """The figures of a system in a table, slanted where they are only quoted."""
    row = next((row for row in table.rows if row.system == system), None)
    if row is None or not table.figures_of(row):
        return "–"
    form = "+.2f" if table.over else ".2f"
    figures = ["–" if isinstance(figure, str) else f"{figure:{form}}".replace("-", "−") for figure in row.figures]
    text = " / ".join(figures)
    return text if row.preset else f"*{text}*"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
