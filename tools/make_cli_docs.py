"""Write docs/cli.md from the table of commands: python tools/make_cli_docs.py

A test compares the page with what this makes, so it cannot fall behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from longtail.cli.main import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"

TOP = """# The command line

Made by `tools/make_cli_docs.py`; do not edit.

Results go to standard output, all else to standard error. Bars are drawn on a terminal; elsewhere, what
takes over two seconds says in plain lines how far it is, every few seconds (not with `--quiet`). Exit codes: 0 done,
1 `data check` found what would break training, `plan` that it will not fit, or a run of `compare` failed, 2 bad input
(one line says what), 130 interrupted.
"""


def page() -> str:
    """The whole page."""
    return TOP + "".join(f"\n{section}" for section in _commands(get_command(app), ["longtail"]))


def _commands(command: Any, path: list[str]) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield _section(command, path)
        return
    for name, below in inner.items():
        yield from _commands(below, [*path, name])


def _section(command: Any, path: list[str]) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and not param.hidden]
    words = [_argument(param) for param in arguments]
    words += [f"{param.opts[0]} {param.metavar}" for param in options if param.required]
    lines = [f"## {' '.join(path)}", "", f"    {' '.join([*path, *words, '[OPTIONS]'])}", "", _text(command.help), ""]
    lines += [f"- `{param.metavar}`: {_text(param.help)}" for param in arguments]
    lines += [f"- {_names(param)}: {_text(param.help)}{_default(param)}" for param in options]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _argument(param: Any) -> str:
    return str(param.metavar) if param.required else f"[{param.metavar}]"


def _names(param: Any) -> str:
    value = "" if param.is_flag else f" {param.metavar}"
    return ", ".join(f"`{name}{value if number == 0 else ''}`" for number, name in enumerate(param.opts))


def _default(param: Any) -> str:
    given = param.default is not None and not param.is_flag and not param.required
    return f" By default `{param.default}`." if given else ""


def _text(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
