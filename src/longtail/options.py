"""Options: strict, frozen, one class per part, with a docstring under each field as its help.

The same declaration feeds Python keywords, `--set`, TOML files, `--help`, the docs and the saved
manifest. All errors of a configuration are reported in one message, each with its dotted path.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Self, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, InitErrorDetails, PydanticKnownError, core_schema

from longtail.errors import ConfigError, did_you_mean
from longtail.registry import Registry


class Options(BaseModel):
    """Base of all option groups."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _over_defaults(cls, values: Any) -> Any:
        """Merge a group that is given in part with its default here, not with the defaults of its own class."""
        if not isinstance(values, Mapping):
            return values
        return {
            key: _over(cls.model_fields[key].default, value) if key in cls.model_fields else value
            for key, value in values.items()
        }

    @model_validator(mode="after")
    def _numbers_fit_a_machine(self) -> Self:
        for name, value in self:
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(number, int) and abs(number) >= 1 << 62 for number in numbers):
                raise ValueError(f"{name} must be below 2^62 = {1 << 62:,}, got a larger number; leave it out")
        return self

    @classmethod
    def of(cls, values: Mapping[str, Any] | None = None, source: str = "") -> Self:
        """Return the options that `values` (nested plain data) describe; `source` names their origin in errors."""
        try:
            return cls.model_validate(_with_tuples(dict(values or {})))
        except ValidationError as error:
            raise ConfigError(_explain(cls, error, source)) from error

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the options that differ from the defaults of their class: groups with few changes have short reprs."""
        fields = type(self).model_fields
        return ((name, value) for name, value in super().__repr_args__() if value != fields[str(name)].default)

    def plain(self) -> dict[str, Any]:
        """Return these options as plain data, which `of` reads back."""
        return self.model_dump(mode="json")


class _AblationOnly:
    """Marks a field; see `Ablation`."""


T = TypeVar("T")
Ablation: TypeAlias = Annotated[T, _AblationOnly()]
"""The type of an option that only ablations and presets of published systems change: `mask: Ablation[bool] = True`.
`longtail config show` leaves it out where it has its default."""


def is_ablation(cls: type[BaseModel], name: str) -> bool:
    """Return whether a field is marked with `Ablation`."""
    return any(isinstance(mark, _AblationOnly) for mark in cls.model_fields[name].metadata)


class ByKind:
    """Marks a group of options whose class is that of the registered part that its `kind` names.

    encoder: Annotated[EncoderOptions, ByKind(ENCODERS)]

    Faults are located as in a union of all these classes, but only the part that is named is imported.
    """

    def __init__(self, registry: Registry[Any], **others: type[Options]) -> None:
        """`others` are classes of further kinds, which are not in the registry."""
        self.registry, self.others = registry, others

    def options_class(self, kind: str) -> type[Options]:
        """Return the class of the options of a kind."""
        options: type[Options] = self.others.get(kind) or self.registry.get(kind).options_class
        return options

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def _read(self, values: Any) -> Options:
        if isinstance(values, Options):
            return values
        if not isinstance(values, Mapping):
            raise PydanticKnownError("model_attributes_type")
        kind: Any = values.get("kind")
        if kind is None:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
        if not isinstance(kind, str) or (kind not in self.others and kind not in self.registry):
            tags = ", ".join(f"'{name}'" for name in [*self.registry.names(), *self.others])
            raise PydanticKnownError(
                "union_tag_invalid", {"discriminator": "'kind'", "tag": str(kind), "expected_tags": tags}
            )
        try:
            return self.options_class(kind).model_validate(values)
        except ValidationError as error:
            faults = [
                InitErrorDetails(
                    type=fault["type"], loc=(kind, *fault["loc"]), input=fault["input"], ctx=fault.get("ctx", {})
                )
                for fault in error.errors(include_url=False)
            ]
            raise ValidationError.from_exception_data(error.title, faults) from error


def help_of(cls: type[BaseModel]) -> dict[str, str]:
    """Return the docstring under each field of `cls` and of its parents.

    It is read from the source on demand: pydantic would read it on every start of every program.
    """
    docstrings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not (issubclass(base, BaseModel) and base.__module__.partition(".")[0] != "pydantic"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for field, below in pairwise(body):
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                docstrings[field.target.id] = " ".join(str(below.value.value).split())
    return docstrings


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return option layers merged; later ones win, groups are merged key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in (layer or {}).items():
            below = merged.get(key)
            both_groups = isinstance(value, Mapping) and isinstance(below, Mapping)
            merged[key] = merge(below, value) if both_groups else value
    return merged


def is_another(group: Any, kind: Any) -> bool:
    """Return whether `kind` selects another class of options, rather than being an option of this one."""
    field = type(group).model_fields.get("kind") if isinstance(group, Options) else None
    return field is not None and kind not in get_args(field.annotation)


def _over(default: Any, value: Any) -> Any:
    """Return a value merged with its default, if both are groups of the same kind."""
    if not (isinstance(default, Options) and isinstance(value, Mapping)):
        return value
    kind = getattr(default, "kind", None)
    if is_another(default, value.get("kind", kind)):
        return value
    return merge({} if kind is None else {"kind": kind}, default.model_dump(exclude_unset=True), value)


def _with_tuples(value: Any) -> Any:
    """Return plain data with tuples, which options have, for the lists of TOML and JSON."""
    if isinstance(value, Mapping):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(_with_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _explain(cls: type[BaseModel], error: ValidationError, source: str) -> str:
    """Return all errors in one line; a union of which no branch fits is one error."""
    errors = error.errors(include_url=False)
    faults: dict[str, tuple[list[str], str]] = {}  # path or whole text -> rules, input
    for fault in errors:
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
        elif not (fault["type"] == "too_short" and any(_inside(other["loc"], fault["loc"]) for other in errors)):
            rule = re.sub(r"^\w+ should ", "", fault["msg"])  # "Input should be ..."
            faults.setdefault(path, ([], f", got {fault['input']!r}"))[0].append(rule)
    lines = [text + (f" must {', or '.join(rules)}{got}" if rules else "") for text, (rules, got) in faults.items()]
    return (f"{source}: " if source else "") + "; ".join(lines)


def _inside(inner: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    """Return whether a location is inside another: a list with an invalid item is also reported as too short."""
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _located(cls: type[BaseModel], location: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel] | None]:
    """Return the steps of a path without the union branches that pydantic adds, and the group it ends in."""
    group: type[BaseModel] | None = cls
    path, below = [], None
    for step in location:
        fields = group.model_fields if group else {}
        if step in fields:
            field = fields[str(step)]
            below = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            group = _model_in(below)
        elif isinstance(step, str) and _has_union(below):
            group = _model_in(below, step) or group
            continue
        path.append(str(step))
    return path, group


def _has_union(annotation: Any) -> bool:
    if isinstance(annotation, ByKind) or get_origin(annotation) in (Union, UnionType):
        return True
    return any(_has_union(inner) for inner in get_args(annotation))


def _model_in(annotation: Any, kind: str = "") -> type[BaseModel] | None:
    """Return the first group that a value may be, or the one of this kind."""
    if isinstance(annotation, ByKind):
        return annotation.options_class(kind) if kind else None
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get("kind")
        return annotation if not kind or (field is not None and field.default == kind) else None
    groups = (_model_in(inner, kind) for inner in get_args(annotation))
    return next((group for group in groups if group is not None), None)
