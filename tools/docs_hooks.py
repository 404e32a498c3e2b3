"""MkDocs hooks: pages of the site that live elsewhere in the repository, and links that lead out of docs/.

The changelog, the architecture and the like stay where people look for them on the repository's front page; the site
shows them too. A link from a page to a file of the repository becomes a link to its page on the site where it has one,
and a link into the repository otherwise. A link to a file that does not exist is left as it is, so that the strict
build fails.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Files of the repository → pages of the site."""
EXAMPLES = "examples.md"
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from files outside docs/."""
    for path, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text("utf-8")))
    files.append(File.generated(config, EXAMPLES, content=examples_page()))
    return files


def examples_page() -> str:
    """Return one page with every file of examples/."""
    sections = ["# Examples\n\nShort programs that run as they are, with the data set that comes with longtail.\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text("utf-8")
        title = path.stem.replace("_", " ").capitalize()
        sections.append(f"## {title}\n\n`examples/{path.name}`\n\n```python\n{code}```\n")
    return "\n".join(sections)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links that leave docs/ to the site's page of that file, or into the repository."""
    source = {site: path for path, site in PAGES.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    pieces = CODE.split(markdown)
    pieces[::2] = [
        LINK.sub(lambda link: _rewritten(link, source, page.file.src_uri, config.repo_url), piece)
        for piece in pieces[::2]
    ]
    return "".join(pieces)


def _rewritten(link: re.Match[str], source: str, site_page: str, repository: str) -> str:
    target = os.path.normpath(PurePosixPath(source).parent / link[2])
    if not (ROOT / target).exists():
        return link[0]
    target = PurePosixPath(target).as_posix()
    if target in PAGES:
        on_site = PAGES[target]
    elif target == "examples":
        on_site = EXAMPLES
    elif target == "README.md":
        on_site = "index.md"
    elif target.startswith("docs/"):
        on_site = target.removeprefix("docs/")
    else:
        return f"{link[1]}{repository}/blob/main/{target}{link[3]}"
    relative = os.path.relpath(on_site, PurePosixPath(site_page).parent)
    return f"{link[1]}{PurePosixPath(relative).as_posix()}{link[3]}"
