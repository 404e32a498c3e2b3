"""Methods and options of the rows of real_data.py.

    method_and_options(row, data, folder of encoders)  ->  method, options

Most rows are a method or a preset as it comes. Networks read texts with an encoder of the language and length of the
data, and train as long as there is time for; NAME~1 is the row NAME with seed 1. Rows of ALIKE have the same encoder,
length of texts and number of epochs, so that methods can be compared on even ground; `attentionxml`, whose BiLSTM is
part of the method, is as it comes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

NETWORKS = ("lightxml", "xbert", "xr-transformer", "aplc-xlnet", "treaderxml/transformer", "attentionxml")
WITH_NETWORKS = ("stack/gpu", *NETWORKS)
ENGLISH, GERMAN_TOO = "e5-small", "multilingual-e5-small-deen"
READERS: dict[str, dict[str, Any]] = {
    "eurlex57k": {"model": ENGLISH, "max_tokens": 512},
    "tibkat-gnd": {"model": GERMAN_TOO, "max_tokens": 192},
    "yso-finna-en": {"model": ENGLISH, "max_tokens": 32},
    "debtags": {"model": ENGLISH, "max_tokens": 128},
    "cooking-stackexchange": {"model": ENGLISH, "max_tokens": 48},
}
TRAINING: dict[str, dict[str, Any]] = {
    "eurlex57k": {"epochs": 11.0},
    "tibkat-gnd": {"epochs": 12.0},
    "yso-finna-en": {"epochs": 8.0, "batch_size": 256, "rate": 2e-4, "head_rate": 4e-3},
    "debtags": {"epochs": 10.0},
    "cooking-stackexchange": {"epochs": 13.0},
}
EPOCHS = 8.0
"""Passes over the texts in rows of ALIKE."""


def method_and_options(row: str, data: str, encoders: Path) -> tuple[str, dict[str, Any]]:
    """Return the method of a row and its options on a data set."""
    name, _, seed = row.partition("~")
    method, options = _row(name, data, encoders)
    return method, {**options, "seed": int(seed)} if seed else options


def _row(name: str, data: str, encoders: Path) -> tuple[str, dict[str, Any]]:
    if name == "stack/gpu":
        lightxml = {"encoders": [_reader(data, encoders, 5)], "training": {**LIGHTXML, **TRAINING[data]}}
        others = ["linear", "linear/letters", "knn", "lexical"]
        return name, {"members": [{"method": "lightxml", "options": lightxml}, *others]}
    if name in ALIKE:
        return name, ALIKE[name](_reader(data, encoders, 5), _reader(data, encoders, 1))
    return name, {}


def _reader(data: str, encoders: Path, n_layers: int) -> dict[str, Any]:
    of = READERS[data]
    tokens = {"max_tokens": of["max_tokens"]}
    return {"kind": "transformer", "model": str(encoders / of["model"]), "n_layers": n_layers, "tokens": tokens}


LIGHTXML = {"batch_size": 64, "rate": 1e-4, "head_rate": 2e-3, "clip_norm": 1.0}
TRAINED = {**LIGHTXML, "epochs": EPOCHS, "bottleneck_rate": 2e-3}
ALIKE = {
    "lightxml": lambda deep, plain: {"encoders": [deep], "training": TRAINED},
    "aplc-xlnet": lambda deep, plain: {"encoder": deep, "training": TRAINED},
    "xbert": lambda deep, plain: {"recalls": [plain], "matcher": {"training": TRAINED}},
    "xr-transformer": lambda deep, plain: {
        "encoders": [plain],
        "fine_tuning": {"training": [{**TRAINED, "epochs": epochs} for epochs in (2.0, 2.0, EPOCHS - 4.0)]},
    },
    "treaderxml/transformer": lambda deep, plain: {
        "encoder": {**deep, "scope_tokens": deep["tokens"]["max_tokens"] // 3},
        "training": TRAINED,
    },
}
"""Options by method, given an encoder read at its last five layers, and one read at its last."""
