"""The systems, each a short composition of shared parts, behind one interface.

METHODS.get("linear")            the class
create_method("linear/parabel")  an untrained model of it with the settings of a preset
load_model("folder")             a trained one
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtail.errors import ConfigError
from longtail.methods.base import METHODS, MODEL, Method
from longtail.options import merge
from longtail.persist import Folder
from longtail.presets import load_preset
from longtail.run import Precision


def create_method(name: str, *layers: Mapping[str, Any] | None) -> Method:
    """An untrained model by method or preset name; option layers lie over the preset, later ones win."""
    method = name.split("/", 1)[0]
    known = METHODS.get(method)
    preset = load_preset(name) if "/" in name else {}
    return known.from_options(merge(preset, *layers))


def load_model(path: str | Path, verify: bool | None = None, precision: Precision = "auto") -> Method:
    """Open a saved model; `verify` forces or skips the checksums (by default only small models are checked).

    A network reads texts with numbers of `precision`: fp32, as it was trained; bf16; int8, on a CPU; `auto` is bf16 on
    a GPU and fp32 on a CPU.
    """
    folder = Folder(path, MODEL, verify)
    method = METHODS.get(str(folder.manifest["method"]))
    if precision not in method.precisions:
        known = ", ".join(method.precisions)
        raise ConfigError(f"precision must be one of {known} for method {method.name}, got '{precision}'")
    model = method.open(folder)
    model.precision = precision
    return model
