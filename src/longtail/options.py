"""Options: strict, frozen, one model per part, with a docstring under each field as its help.

The same declaration feeds Python keywords, `--set`, TOML files, `--help`, the docs and the saved
manifest. All faults of a configuration are reported in one message, each with its dotted path.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from longtail.errors import ConfigError, did_you_mean


class Options(BaseModel):
    """Base of all option groups."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _over_defaults(cls, values: Any) -> Any:
        """A group that is given in part lies over the default that it has here, not over that of its class."""
        if not isinstance(values, Mapping):
            return values
        return {
            key: _over(cls.model_fields[key].default, value) if key in cls.model_fields else value
            for key, value in values.items()
        }

    @classmethod
    def of(cls, values: Mapping[str, Any] | None = None, source: str = "") -> Self:
        """Check `values` (nested plain data) and build the options; `source` names their origin."""
        try:
            return cls.model_validate(_with_tuples(dict(values or {})))
        except ValidationError as error:
            raise ConfigError(_explain(cls, error, source)) from error

    def plain(self) -> dict[str, Any]:
        """These options as plain data that `of` reads back."""
        return self.model_dump(mode="json")


def help_of(cls: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field, of `cls` and what it inherits.

    Read from the source when it is asked for: pydantic would read it on every start of every program.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not (issubclass(base, BaseModel) and base.__module__.partition(".")[0] != "pydantic"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for field, below in pairwise(body):
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Lay option layers over each other; later ones win, groups are merged key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in (layer or {}).items():
            below = merged.get(key)
            both_groups = isinstance(value, Mapping) and isinstance(below, Mapping)
            merged[key] = merge(below, value) if both_groups else value
    return merged


def is_another(group: Any, kind: Any) -> bool:
    """Whether `kind` makes another group of this one, with options of its own, and is not just one of its options."""
    field = type(group).model_fields.get("kind") if isinstance(group, Options) else None
    return field is not None and kind not in get_args(field.annotation)


def _over(default: Any, value: Any) -> Any:
    """A value over a default, where both are groups of the same kind."""
    if not (isinstance(default, Options) and isinstance(value, Mapping)):
        return value
    kind = getattr(default, "kind", None)
    if is_another(default, value.get("kind", kind)):
        return value
    return merge({} if kind is None else {"kind": kind}, default.model_dump(exclude_unset=True), value)


def _with_tuples(value: Any) -> Any:
    """TOML and JSON have lists where options have tuples."""
    if isinstance(value, Mapping):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(_with_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _explain(cls: type[BaseModel], error: ValidationError, source: str) -> str:
    """All faults in one line; where no branch of a union fits, that is one fault."""
    found = error.errors(include_url=False)
    faults: dict[str, tuple[list[str], str]] = {}  # path or whole text -> rules, input
    for fault in found:
        unknown = fault["loc"][-1:] if fault["type"] == "extra_forbidden" else ()
        steps, group = _located(cls, fault["loc"][: len(fault["loc"]) - len(unknown)])
        path = ".".join(map(str, (*steps, *unknown)))
        if unknown:
            hint = did_you_mean(str(unknown[0]), group.model_fields if group else [])
            faults[f"unknown option '{path}'{hint}"] = [], ""
        elif fault["type"] == "union_tag_invalid":
            faults[f"{path}.kind"] = [f"be one of {fault['ctx']['expected_tags']}"], f", got '{fault['ctx']['tag']}'"
        elif fault["type"] == "union_tag_not_found":
            faults[f"{path}.kind"] = ["be given"], f", got {fault['input']!r}"
        elif fault["type"] == "value_error":
            reason = str(fault["ctx"]["error"])
            names_option = group is not None and reason.partition(" ")[0].partition(".")[0] in group.model_fields
            faults[f"{path}{'.' if names_option else ': '}{reason}" if path else reason] = [], ""
        elif not (fault["type"] == "too_short" and any(_inside(other["loc"], fault["loc"]) for other in found)):
            rule = re.sub(r"^\w+ should ", "", fault["msg"])  # "Input should be ..."
            faults.setdefault(path, ([], f", got {fault['input']!r}"))[0].append(rule)
    lines = [text + (f" must {', or '.join(rules)}{got}" if rules else "") for text, (rules, got) in faults.items()]
    return (f"{source}: " if source else "") + "; ".join(lines)


def _inside(inner: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    """A list with a fault in an item is also called too short, as if the item were not there."""
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _located(cls: type[BaseModel], location: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel] | None]:
    """The steps of a path, without the names of union branches that pydantic puts in; and the group it ends in."""
    group: type[BaseModel] | None = cls
    path, below = [], None
    for step in location:
        fields = group.model_fields if group else {}
        if step in fields:
            below = fields[str(step)].annotation
            group = _model_in(below)
        elif isinstance(step, str) and _has_union(below):
            group = _model_in(below, step) or group
            continue
        path.append(str(step))
    return path, group


def _has_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType) or any(_has_union(inner) for inner in get_args(annotation))


def _model_in(annotation: Any, kind: str = "") -> type[BaseModel] | None:
    """The first group that a value may be; or that of this kind."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        own = annotation.model_fields.get("kind")
        return annotation if not kind or (own is not None and own.default == kind) else None
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner, kind)
        if found is not None:
            return found
    return None
