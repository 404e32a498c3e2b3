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
    "eurlex57k": {"epochs": 10.0},
    "tibkat-gnd": {"epochs": 10.0},
    "yso-finna-en": {"epochs": 10.0, "batch_size": 256, "rate": 2e-4, "head_rate": 4e-3},
    "debtags": {"epochs": 10.0},
    "cooking-stackexchange": {"epochs": 13.0},
}
RANKED: dict[str, dict[str, Any]] = {
    "tibkat-gnd": {"max_ranked_texts": 18_000},
    "yso-finna-en": {"max_ranked_texts": 30_000},
}
"""More texts for the ranker where one fold has them."""
EPOCHS = 8.0
"""Passes over the texts in rows of ALIKE."""
EVEN_TOKENS = {"eurlex57k": 128, "tibkat-gnd": 128}
EVEN_EPOCHS = {"eurlex57k": 4.0, "tibkat-gnd": 4.0}
"""Less of the texts and fewer passes in rows of ALIKE, so that all of them fit into the time of a lent GPU."""


def method_and_options(row: str, data: str, encoders: Path) -> tuple[str, dict[str, Any]]:
    """Return the method of a row and its options on a data set."""
    name, _, seed = row.partition("~")
    method, options = _row(name, data, encoders)
    return method, {**options, "seed": int(seed)} if seed else options


def _row(name: str, data: str, encoders: Path) -> tuple[str, dict[str, Any]]:
    if name == "stack/gpu":
        tokens = READERS[data]["max_tokens"]
        lightxml = {"encoders": [_reader(data, encoders, tokens, 5)], "training": {**TRAINED, **TRAINING[data]}}
        network, others = {"method": "lightxml", "options": lightxml}, ["linear", "linear/letters", "knn", "lexical"]
        # On the largest data, the others are trained while the GPU has other work.
        members = [*others, network] if data in RANKED else [network, *others]
        return name, {"members": members, **RANKED.get(data, {})}
    if name in ALIKE:
        tokens = EVEN_TOKENS.get(data, READERS[data]["max_tokens"])
        deep, plain = (_reader(data, encoders, tokens, n_layers) for n_layers in (5, 1))
        return name, ALIKE[name](deep, plain, {**TRAINED, "epochs": EVEN_EPOCHS.get(data, EPOCHS)})
    return name, {}


def _reader(data: str, encoders: Path, max_tokens: int, n_layers: int) -> dict[str, Any]:
    model = str(encoders / READERS[data]["model"])
    return {"kind": "transformer", "model": model, "n_layers": n_layers, "tokens": {"max_tokens": max_tokens}}


TRAINED = {"batch_size": 64, "rate": 1e-4, "head_rate": 2e-3, "bottleneck_rate": 2e-3, "clip_norm": 1.0}
ALIKE = {
    "lightxml": lambda deep, plain, training: {"encoders": [deep], "training": training},
    "aplc-xlnet": lambda deep, plain, training: {"encoder": deep, "training": training},
    "xbert": lambda deep, plain, training: {"recalls": [plain], "matcher": {"training": training}},
    "xr-transformer": lambda deep, plain, training: {
        "encoders": [plain],
        "fine_tuning": {
            "training": [{**training, "epochs": training["epochs"] * share} for share in (0.25, 0.25, 0.5)]
        },
    },
    "treaderxml/transformer": lambda deep, plain, training: {
        "encoder": {**deep, "scope_tokens": deep["tokens"]["max_tokens"] // 3},
        "training": training,
    },
}
"""Options by method, given an encoder read at its last five layers, one read at its last, and how it is trained."""
