"""Named settings: data, not code. `linear/parabel` is the file linear/parabel.toml beside this one."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from longtail.errors import ConfigError, did_you_mean

_ROOT = Path(str(files("longtail.presets")))


def preset_names(method: str | None = None) -> list[str]:
    """Return the names of all presets, or of those of one method."""
    names = sorted(file.relative_to(_ROOT).with_suffix("").as_posix() for file in _ROOT.rglob("*.toml"))
    return [name for name in names if method is None or name.startswith(f"{method}/")]


def load_preset(name: str) -> dict[str, Any]:
    """Return the options that a preset sets."""
    known = preset_names()
    if name not in known:
        raise ConfigError(f"unknown preset '{name}'{did_you_mean(name, known)} (longtail methods)")
    return read_options(_ROOT / f"{name}.toml")


def describe_preset(name: str) -> str:
    """Return the first comment line of a preset, which says what it is."""
    first = (_ROOT / f"{name}.toml").read_text(encoding="utf-8").splitlines()[0]
    return first.lstrip("# ").strip()


def read_options(path: str | Path) -> dict[str, Any]:
    """Return the options of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # also of bytes that are not UTF-8, and of numbers with more digits than Python reads
        raise ConfigError(f"{path} must be TOML: {error}") from error
