"""Options of models that earlier versions of longtail saved, as this version reads them.

Values that named whose behaviour an option follows (`paper`, `code`, `fixed`) now say what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_VALUES: dict[tuple[str, str], dict[str, str]] = {
    ("kinds", "weighting"): {"paper": "equal", "fixed": "equal", "code": "by_label_count"},
    ("head_in_root", "tails"): {"paper": "linear", "code": "normed", "fixed": "normed"},
    ("head_in_root", "gates"): {"paper": "touched", "code": "always", "fixed": "always"},
    ("head_in_root", "normaliser"): {"paper": "per_batch", "code": "per_text", "fixed": "per_text"},
    ("bottleneck_width", "bottleneck"): {"paper": "sigmoid", "code": "linear", "fixed": "linear"},
    ("bottleneck_width", "loss"): {"paper": "sum", "code": "mean_over_slots", "fixed": "mean"},
    ("scope_words", "mask"): {"paper": "anticausal", "fixed": "causal"},
    ("min_share", "parentless"): {"paper": "drop", "fixed": "keep"},
    ("teacher", "loss"): {"paper": "softmax_sigmoid", "fixed": "bce"},
}
"""By another option of the same group, which tells the groups apart, and the option's name: old values and new ones."""


def current_options(saved: Any) -> Any:
    """Return options (plain data, complete as models hold them) with old names and values replaced by new ones."""
    if isinstance(saved, list | tuple):
        return [current_options(item) for item in saved]
    if not isinstance(saved, Mapping):
        return saved
    options = {name: current_options(value) for name, value in saved.items()}
    for (neighbour, name), values in _VALUES.items():
        if neighbour in options and isinstance(options.get(name), str):
            options[name] = values.get(options[name], options[name])
    variant = options.pop("variant", None) if options.get("kind") == "bilstm" else None
    if variant is not None:
        options["padding"] = "read" if variant == "code" else "masked"
        options["dense"] = 2000 if variant == "code" else options["dense"]
    return options
