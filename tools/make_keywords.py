"""Write src/longtail/methods/keywords.pyi from the options of the methods: python tools/make_keywords.py

Type checkers and completion read the constructors' keywords there. A test compares the file with what this makes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from longtail.methods import METHODS
from longtail.options import ByKind, Options

FILE = Path(__file__).resolve().parents[1] / "src" / "longtail" / "methods" / "keywords.pyi"

TOP = '''"""Keywords of the methods' constructors, for type checkers and completion; no program imports it.

Made by `tools/make_keywords.py` from the options classes; do not edit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

'''


def page() -> str:
    """Return the whole file, formatted."""
    methods = [METHODS.get(name).options_class for name in METHODS.names()]
    ours = [options for options in methods if options.__module__.startswith("longtail.")]
    groups = {group.__name__: group for options in ours for group in _groups(options)}
    nested = {group for options in groups.values() for group in _nested(options)}
    imports = [f"from {group.__module__} import {name}" for name, group in groups.items() if group in nested]
    classes = [_typed_dict(group) for _, group in sorted(groups.items())]
    text = TOP + "\n".join(sorted(imports)) + "\n\n" + "\n\n".join(classes) + "\n"
    for command in (("check", "--select", "I", "--fix"), ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", f"--stdin-filename={FILE}", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def keywords_name(options: type[Options]) -> str:
    """Return the name of the TypedDict of an options class."""
    return f"{options.__name__.removesuffix('Options')}Keywords"


def _typed_dict(options: type[Options]) -> str:
    fields = options.model_fields.items()
    lines = [f"    {name}: {_type(field.annotation, _takes_plug_ins(field.metadata))}" for name, field in fields]
    return "\n".join([f"class {keywords_name(options)}(TypedDict, total=False):", *lines])


def _groups(options: type[Options]) -> Iterator[type[Options]]:
    """Yield an options class and all that its fields hold."""
    yield options
    for group in _nested(options):
        yield from _groups(group)


def _nested(options: type[Options]) -> list[type[Options]]:
    return [group for field in options.model_fields.values() for group in _options_in(field.annotation)]


def _options_in(annotation: Any) -> Iterator[type[Options]]:
    if _is_options(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _options_in(inner)


def _is_options(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Options) and bool(annotation.model_fields)


def _takes_plug_ins(metadata: Any) -> bool:
    return any(isinstance(mark, ByKind) for mark in metadata)


def _type(annotation: Any, plug_ins: bool = False) -> str:
    """Return what may be given for a field: groups also as mappings, tuples also as lists.

    Where `plug_ins` may bring groups with keys of their own, mappings are not looked into.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if _is_options(annotation):
        mapping = "Mapping[str, Any]" if plug_ins else keywords_name(annotation)
        return f"{mapping} | {annotation.__name__}"
    if origin is Annotated:
        return _type(inner[0], plug_ins or _takes_plug_ins(annotation.__metadata__))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(_type(member, plug_ins) for member in inner))
    if origin is tuple:
        members = dict.fromkeys(_type(member) for member in inner if member is not Ellipsis)
        return f"Sequence[{' | '.join(members)}]"
    if origin in (dict, Mapping):
        return f"Mapping[{', '.join(map(_type, inner))}]"
    if annotation in (NoneType, None):
        return "None"
    return annotation.__name__ if annotation in (bool, int, float, str) else "Any"


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
