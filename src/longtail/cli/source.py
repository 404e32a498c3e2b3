"""From the options of a command to a data set and a method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.errors import ConfigError, did_you_mean
from longtail.progress import Progress

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset
    from longtail.methods.base import Method

_VOCABULARY_OPTIONS = ("hierarchy", "language", "ids")


def load_data(
    data: str,
    progress: Progress,
    *,
    columns: Sequence[str] = ("text",),
    optional: Sequence[str] = (),
    format: str | None = None,
    vocabulary: Path | None = None,
    read: Sequence[str] | None = None,
    **given: str | None,
) -> Dataset:
    """The data set, with these columns of texts and the optional ones; `given` are options of the format by name."""
    from longtail.data.formats import find_format
    from longtail.data.load import load_dataset, load_vocabulary
    from longtail.settings import with_settings

    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options = with_settings(options, read or ())
    named = options.pop("vocabulary", {})
    for option in named:
        if option not in _VOCABULARY_OPTIONS:
            raise ConfigError(f"unknown option 'vocabulary.{option}'{did_you_mean(option, _VOCABULARY_OPTIONS)}")
    if named and vocabulary is None:
        raise ConfigError("--read vocabulary.… is about a --vocabulary, got none")
    path = Path(data).expanduser()
    further = tuple(column for column in columns if column != "text")
    if (further or optional) and path.exists() and find_format(path, format) == "table":
        options = {"fields": further, "optional_fields": tuple(optional)} | options
    names = load_vocabulary(vocabulary, **named) if vocabulary is not None else None
    return load_dataset(data, format=format, vocabulary=names, progress=progress, **options)


def choose_method(
    name: str,
    config: Path | None = None,
    settings: Sequence[str] | None = None,
    fields: str | None = None,
    seed: int | None = None,
) -> Method:
    """An untrained method: defaults, then the preset, the file, and the options of the command, later ones winning."""
    from longtail.methods import create_method
    from longtail.presets import read_options
    from longtail.settings import with_settings

    written = read_options(config) if config is not None else {}
    try:
        chosen = create_method(name, written)
    except ConfigError as error:
        raise ConfigError(f"{config}: {error}" if written else str(error)) from error
    options = chosen.options.plain()
    if fields is not None:
        options |= chosen.reading(fields, options)
    if seed is not None:
        options["seed"] = seed
    known = type(chosen).from_options(options).options
    return type(chosen).from_options(with_settings(known, settings or ()))
