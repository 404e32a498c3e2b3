"""From whatever holds texts and labels to a `Dataset`.

    load_dataset("folder" | "file.csv" | "debtags" | {"train": (texts, labels)})  ->  Dataset

The index of labels is made of all labels in the splits and those that the data's own list of labels names;
a vocabulary only names them. Labels of dev and test that train does not have stay in the ground truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from longtail.data.assemble import assemble
from longtail.data.dataset import Dataset, Texts
from longtail.data.formats import FORMATS, find_format
from longtail.data.lines import bare_stem
from longtail.data.names import read_hierarchy, read_names
from longtail.data.skos import SUFFIXES, read_skos
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError, did_you_mean
from longtail.progress import SILENT, Progress


def load_dataset(
    source: str | Path | Dataset | Mapping[str, tuple[Texts, Iterable[Iterable[str]]]],
    *,
    format: str | None = None,
    vocabulary: str | Path | Vocabulary | None = None,
    progress: Progress = SILENT,
    **options: Any,
) -> Dataset:
    """Load a folder, a file, a bundled data set by name, or texts and label lists by split.

    `format` names one of `longtail.data.formats.FORMATS` where the files do not tell; `options` are those
    of the format, for example `text_column`. `vocabulary` (a file of names, SKOS, or a Vocabulary) names
    the labels.
    """
    named = load_vocabulary(vocabulary) if isinstance(vocabulary, str | Path) else vocabulary
    if isinstance(source, Dataset | Mapping):
        if format is not None or options:
            raise DataError("format and its options are for files, got them with data that are loaded already")
        dataset = source if isinstance(source, Dataset) else Dataset.of(source)
        return dataset if named is None else dataset.named_by(named)
    path = _find(source)
    try:
        name = find_format(path, format)
        checked = FORMATS[name].options.of(options, source=f"format {name}")
        found = FORMATS[name].read(path, checked)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    given = str(vocabulary) if isinstance(vocabulary, str | Path) else None
    facts = {
        "source": str(source),
        "format": name,
        "options": checked.plain(),
        "files": {**found.files, **({"official": given} if given else {})},
    }
    title = path.resolve().name if path.is_dir() else bare_stem(path)
    return assemble(found, title, named, facts, progress)


def load_vocabulary(
    path: str | Path,
    *,
    hierarchy: str | Path | None = None,
    language: str = "en",
    ids: Literal["uri", "prefixed", "local", "notation"] = "uri",
) -> Vocabulary:
    """Load label names from a tab-separated file, or from SKOS with names in `language` and ids as data have them."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"a vocabulary must be a file of names or of SKOS, there is no file {path}")
    if path.suffix.lower() in SUFFIXES:
        return read_skos(path, language, ids)
    names = read_names(path)
    return names if hierarchy is None else names.described_by(names, read_hierarchy(Path(hierarchy)))


def bundled_datasets() -> list[str]:
    """Names of the data sets that come with longtail."""
    root = _bundled()
    return sorted(folder.name for folder in root.iterdir() if folder.is_dir()) if root.is_dir() else []


def _bundled() -> Path:
    return Path(str(files("longtail.data") / "bundled"))


def _find(source: str | Path) -> Path:
    path = Path(source).expanduser()
    if path.exists():
        return path
    bundled = bundled_datasets()
    if str(source) in bundled:
        return _bundled() / str(source)
    beside = [str(path.with_name(other.name)) for other in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(str(source), [*bundled, *beside])
    raise DataError(
        f"there is no file or folder {source}, nor a bundled data set of that name{hint or '.'} "
        f"Bundled: {', '.join(bundled) or 'none'}. Give the path of a folder, a .jsonl, .csv, .parquet or .txt file."
    )
