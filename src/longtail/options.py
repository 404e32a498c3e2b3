"""Options: strict, frozen, one model per part, with a docstring under each field as its help.

The same declaration feeds Python keywords, `--set`, TOML files, `--help`, the docs and the saved
manifest. All faults of a configuration are reported in one message, each with its dotted path.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from longtail.errors import ConfigError, did_you_mean


class Options(BaseModel):
    """Base of all option groups."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)

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


def _with_tuples(value: Any) -> Any:
    """TOML and JSON have lists where options have tuples."""
    if isinstance(value, Mapping):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(_with_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _explain(cls: type[BaseModel], error: ValidationError, source: str) -> str:
    prefix = f"{source}: " if source else ""
    faults = []
    for fault in error.errors(include_url=False):
        path = ".".join(str(step) for step in fault["loc"])
        if fault["type"] == "extra_forbidden":
            hint = did_you_mean(str(fault["loc"][-1]), _siblings(cls, fault["loc"]))
            faults.append(f"unknown option '{path}'{hint}")
        elif fault["type"] == "value_error":
            faults.append(f"{path}: {fault['ctx']['error']}" if path else str(fault["ctx"]["error"]))
        else:
            rule = fault["msg"].replace("Input should be", "must be")
            faults.append(f"{path} {rule}, got {fault['input']!r}")
    return prefix + "; ".join(faults)


def _siblings(cls: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Names of the fields beside the unknown one at `location`."""
    group: Any = cls
    for step in location[:-1]:
        if isinstance(step, int) or not hasattr(group, "model_fields"):
            continue
        field = group.model_fields.get(step)
        group = _model_in(field.annotation) if field else None
        if group is None:
            return []
    return list(getattr(group, "model_fields", {}))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
