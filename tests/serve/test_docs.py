"""The page about the server names what there is."""

from __future__ import annotations

from pathlib import Path

from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.settings import ServeSettings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tasks" / "serve.md").read_text(encoding="utf-8")


def test_the_page_names_every_limit_with_its_default() -> None:
    fields = {name: field.default for name, field in ServeSettings.model_fields.items() if name != "tokens"}
    rows = {
        row.split("|")[1].strip(" `"): row.split("|")[2].strip() for row in PAGE.splitlines() if row.startswith("| `")
    }
    assert set(fields) <= set(rows)
    for name, default in fields.items():
        if default is not None and not isinstance(default, bool):
            assert rows[name] == f"{default:,g}" if isinstance(default, float) else f"{default:,}", name


def test_the_page_names_every_path(models: Models) -> None:
    paths = create_app(models).openapi()["paths"]
    assert not [
        path
        for path in paths
        if path.replace("project_id", "id") not in PAGE and "project" not in path and path != "/v1/"
    ]
