"""Print what the house keeps low in `src`: lines of code, long argument lists, splatted calls, vague names.

python tools/house_figures.py [--list]     with --list, each place as well
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "longtail"
MAX_POSITIONAL = 6
VAGUE_NAMES = {"found", "made", "own", "parts", "told", "said"}


def code_lines(file: Path) -> int:
    """Count the lines that hold code: no blank lines, comments or docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    strings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = file.read_text(encoding="utf-8").splitlines()
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in strings
        for number, line in enumerate(lines, 1)
    )


def long_argument_lists(file: Path) -> Iterator[str]:
    """Yield functions with more than six positional parameters, `self` and `cls` not counted."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            n_positional = len(names) - (names[:1] in (["self"], ["cls"]))
            if n_positional > MAX_POSITIONAL:
                yield f"{file}:{node.lineno}: {node.name} takes {n_positional}"


def splatted_calls(file: Path) -> Iterator[str]:
    """Yield calls that are given a tuple as `*name`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        tuples = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Tuple)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                starred = [a.value for a in node.args if isinstance(a, ast.Starred)]
                for value in starred:
                    if isinstance(value, ast.Tuple) or (isinstance(value, ast.Name) and value.id in tuples):
                        yield f"{file}:{node.lineno}: {ast.unparse(node)[:90]}"


def vague_locals(file: Path) -> Iterator[str]:
    """Yield assignments to names that don't say what they hold."""
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        nodes = ast.walk(function) if isinstance(function, ast.FunctionDef) else ()
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE_NAMES:
                yield f"{file}:{node.lineno}: {node.id}"


def main() -> None:
    """Print the figures."""
    files = sorted(SOURCE.rglob("*.py"))
    print(f"{sum(map(code_lines, files)):,} lines of code in {len(files)} files")
    outside = [file for file in files if not {"kernels", "cli"} & {*file.relative_to(SOURCE).parts}]
    rows = {
        "functions with more than six positional parameters (outside kernels and cli)": (long_argument_lists, outside),
        "calls with a splatted tuple": (splatted_calls, files),
        "locals with vague names": (vague_locals, files),
    }
    for what, (check, checked) in rows.items():
        places = [place for file in checked for place in check(file)]
        print(f"{len(places):,} {what}")
        if "--list" in sys.argv:
            print(*(f"  {place}" for place in places), sep="\n")


if __name__ == "__main__":
    main()
