"""Options as people write them: TOML with their help as comments, and `ranker.threshold=0.05`.

    options_toml(options)                         ->  a file that `--config` reads back
    with_settings(plain, ["ranker.threshold=1"])  ->  plain options with these values laid over

In a setting a number or `*` selects items of a list: `features.blocks.0.weight=2`, `features.blocks.*.min_df=3`. Values
are TOML, or lists and tables as JSON; all else is a string. A `kind` that selects another part (`encoder.kind=bilstm`)
drops the options of the old one.
"""

from __future__ import annotations

import copy
import json
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from longtail.errors import ConfigError
from longtail.options import Options, help_of, is_ablation, is_another

_COLUMNS = 100


def options_toml(options: Options, title: str = "", *, unless_as: Sequence[Options] = ()) -> str:
    """Return options with their values and help, as TOML that gives the same options when it is read.

    An option that only ablations need is left out if it is as in all of `unless_as`; by default none is left out.
    """
    lines = [*_comment(title), ""] if title else []
    lines += _group(options, "", unless_as)
    return "\n".join(lines).rstrip("\n") + "\n"


def with_settings(options: Options | Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return options as plain data in which each `path=value` is set; unknown names are kept."""
    changed = options.plain() if isinstance(options, Options) else copy.deepcopy(dict(options))
    for setting in settings:
        path, equals, value = setting.partition("=")
        steps = [step.strip() for step in path.split(".")]
        if not equals or not all(steps):
            raise ConfigError(f"a setting must be option=value, such as ranker.threshold=0.05, got '{setting}'")
        _set(changed, steps, read_value(value.strip()), path.strip(), options)
    return changed


def with_values(options: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain options with these values, which are plain data, set by path."""
    changed = copy.deepcopy(dict(options))
    for path, value in values.items():
        _set(changed, path.split("."), value, path)
    return changed


def value_at(options: Mapping[str, Any], path: str) -> Any:
    """Return the value of an option, that of the first item for `*`; None if there is none."""
    value: Any = options
    for step in path.split("."):
        if isinstance(value, list):
            value = next((item for number, item in enumerate(value) if step in ("*", str(number))), None)
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def read_value(text: str) -> Any:
    """Return a value written as TOML, or a list or table written as JSON; anything else is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # not TOML, or a number with more digits than Python reads
        return _list_or_table(text)


def _list_or_table(text: str) -> Any:
    """Return what JSON says, or the text itself."""
    try:
        return json.loads(text) if text.startswith(("[", "{")) else text
    except ValueError:
        return text


def _set(group: Any, steps: list[str], value: Any, path: str, options: Any = None) -> None:
    """Set a value in `group`, plain data of `options` if these are known."""
    step, rest = steps[0], steps[1:]
    if isinstance(group, list):
        keys: list[Any] = [number for number in range(len(group)) if step in ("*", str(number))]
        if not keys:
            known = f"a number from 0 to {len(group) - 1}, or *" if group else "nothing, the list is empty"
            raise ConfigError(f"{path}: '{step}' must be {known}")
    else:
        keys = [step]
    for key in keys:
        if not rest:
            if key == "kind" and is_another(options, value):
                group.clear()
            group[key] = value
        else:
            inner = group[key] if isinstance(group, list) else group.get(key)
            if not isinstance(inner, dict | list):
                inner = group[key] = {}
            below = options[key] if isinstance(options, tuple) else getattr(options, str(key), None)
            _set(inner, rest, value, path, below)


def _group(options: BaseModel, path: str, others: Sequence[BaseModel], helpful: bool = True) -> Iterator[str]:
    """Yield the lines of a group; `others` are `options_toml`'s `unless_as` at the same place."""
    about = help_of(type(options)) if helpful else {}
    inner = []
    for name in type(options).model_fields:
        value = getattr(options, name)
        if others and is_ablation(type(options), name) and all(value == getattr(other, name) for other in others):
            continue
        if isinstance(value, BaseModel) or _is_list_of_groups(value):
            inner.append((name, value))
            continue
        yield from _comment(about.get(name, ""))
        yield f"# {name} is not set" if value is None else f"{name} = {_toml(value)}"
    for name, value in inner:
        dotted = f"{path}{name}"
        for number, group in enumerate(value if isinstance(value, tuple) else [value]):
            yield ""
            if number == 0:
                yield from _comment(about.get(name, ""))
            yield f"[[{dotted}]]" if isinstance(value, tuple) else f"[{dotted}]"
            below = [_like(group, getattr(other, name)) for other in others]
            yield from _group(group, f"{dotted}.", below, helpful and number == 0)


def _like(group: BaseModel, other: Any) -> BaseModel:
    """Return a group of the same class: `other`, or the default of that class in lists and where kinds differ."""
    return other if type(other) is type(group) else type(group)()


def _is_list_of_groups(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), _COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
