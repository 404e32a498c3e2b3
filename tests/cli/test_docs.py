"""The page about the command line is made from the table of commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from longtail.data.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import make_cli_docs; sys.stdout.write(make_cli_docs.page())"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs" / "cli.md").read_text(), "run python tools/make_cli_docs.py"


def test_the_help_names_every_format_and_every_option_has_help() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert all(name in page.split("do not tell: ")[1].split(".\n")[0] for name in FORMATS)
    assert not [line for line in page.splitlines() if line.startswith("- ") and line.rstrip().endswith(":")]
