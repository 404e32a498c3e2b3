"""The systems, each a short composition of shared parts, behind one interface.

METHODS.get("linear")            the class
create_method("linear/parabel")  an untrained model of it with the settings of a preset
load_model("folder")             a trained one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.methods.registry import METHODS as METHODS

if TYPE_CHECKING:
    from longtail.methods.base import Method
    from longtail.run.run import Precision


def create_method(
    name: str,
    *layers: Mapping[str, Any] | None,
    config: str | Path | None = None,
    settings: Sequence[str] = (),
    fields: str | None = None,
    seed: int | None = None,
) -> Method:
    """Return an untrained model by method or preset name.

    Options lie over those of the preset in the order of the arguments, later ones win.

    Args:
        name: A method (`linear`) or a preset of one (`linear/parabel`).
        layers: Options as plain data.
        config: A TOML file of options.
        fields: The fields of texts to read, such as `title,text`; only some methods read several.
        seed: The seed that everything random is drawn from.
        settings: Single options as `path=value`, such as `ranker.threshold=0.05`; they win over all others.
    """
    from longtail.errors import ConfigError
    from longtail.options import merge
    from longtail.presets import read_options
    from longtail.settings import with_settings

    method = METHODS.get(name.split("/", 1)[0])
    written = read_options(config) if config is not None else {}
    try:
        model = method(name if "/" in name else None, **merge(*layers, written))
    except ConfigError as error:
        raise ConfigError(f"{config}: {error}" if written else str(error)) from error
    if fields is None and seed is None and not settings:
        return model
    options = model.options.plain()
    options = merge(options, None if fields is None else model.options_for_fields(fields, options))
    options |= {} if seed is None else {"seed": seed}
    return method.from_options(with_settings(method.from_options(options).options, settings))


def load_model(path: str | Path, verify: bool | None = None, precision: Precision = "auto") -> Method:
    """Return a saved model.

    Args:
        path: The folder that `Method.save` wrote.
        verify: Compare files with their checksums even if that was done before, or not at all. By default, those of
            models above 256 MiB are compared when they are first opened, and not again before they change.
        precision: What its networks predict with unless a call says otherwise: fp32, as they were trained; bf16; int8
            on a CPU; `auto` is bf16 on a GPU and fp32 on a CPU.
    """
    from longtail.errors import ModelFormatError
    from longtail.methods.base import MODEL
    from longtail.methods.manifest import opening
    from longtail.persist import Folder

    folder = Folder(path, MODEL, verify)
    with opening(folder):
        method = METHODS.get(str(folder.manifest["method"]))
    try:
        model = method.open(folder, precision)
    except ModelFormatError:
        if not folder.was_replaced:
            raise
    else:
        if not folder.was_replaced:
            return model
    return load_model(path, verify, precision)  # half of it was another model's: a training ended just now
