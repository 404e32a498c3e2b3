"""Load a `Dataset` from whatever holds texts and labels.

    load_dataset("folder" | "file.csv" | "debtags-sample" | {"train": (texts, labels)})  ->  Dataset

The labels are those of all splits and of the data's own list of labels; a vocabulary only names them. Labels of dev
and test that train does not have stay in the ground truth.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.resources import files
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from longtail.data.assemble import assemble
from longtail.data.dataset import TEXT, Dataset, LabelSets, Texts
from longtail.data.formats import FORMATS, find_format
from longtail.data.formats.table import DELIMITERS
from longtail.data.lines import bare_stem, bare_suffix
from longtail.data.names import read_hierarchy, read_names
from longtail.data.separator import check_separator
from longtail.data.skos import SUFFIXES, ConceptIds, read_skos
from longtail.data.texts import with_text_column
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError, did_you_mean
from longtail.files import as_path
from longtail.run.progress import SILENT, Progress

COLUMN_OPTIONS = ("text_column", "label_column", "label_separator", "delimiter", "quoted")
"""What a model remembers of how its data were read."""
_ADDRESS = re.compile(r"[a-z][a-z+]*://")


def load_dataset(
    source: str | Path | Dataset | Mapping[str, tuple[Texts, LabelSets]],
    *,
    format: str | None = None,
    columns: Collection[str] = (),
    vocabulary: str | Path | Vocabulary | Mapping[str, Any] | None = None,
    usual_options: Mapping[str, Any] = MappingProxyType({}),
    progress: Progress = SILENT,
    **options: Any,
) -> Dataset:
    """Load a folder, a file, a bundled data set by name, or texts and label lists by split.

    Args:
        source: What to load.
        format: One of `longtail.data.formats.FORMATS`; needed only where the files do not tell.
        columns: The columns that will be read, such as `model.columns`: if the column that holds the text is among
            them, it is kept under its own name too.
        vocabulary: Names the labels: a `Vocabulary`, a file for `load_vocabulary`, or its arguments by name.
        usual_options: Options of the format where it has them and `options` does not name them.
        progress: Reports how many texts are read.
        options: Options of the format, for example `text_column`.
    """
    named = _read_vocabulary(vocabulary)
    if isinstance(source, Dataset | Mapping):
        if format is not None or options:
            raise DataError("format and its options are for files, got them with data that are loaded already")
        dataset = source if isinstance(source, Dataset) else Dataset.of(source)
        return dataset if named is None else dataset.named_by(named)
    path = _find(source)
    try:
        name = find_format(path, format)
        kind = FORMATS.get(name)
        usual = {option: usual_options[option] for option in usual_options if option in kind.options.model_fields}
        checked = kind.options.of(usual | options, source=f"format {name}")
        content = kind.read(path, checked)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    official = vocabulary["path"] if isinstance(vocabulary, Mapping) else vocabulary
    set_columns = [option for option in COLUMN_OPTIONS if option in checked.model_fields_set]
    facts = {
        "source": without_password(str(source)),
        "format": name,
        "options": checked.plain(),
        "columns": {option: getattr(checked, option) for option in set_columns},
        "files": {**content.files, **({"official": str(official)} if isinstance(official, str | Path) else {})},
    }
    title = path.partition("://")[0] if isinstance(path, str) else _title(path)
    dataset = assemble(content, title, named, facts, progress)
    separator = getattr(checked, "label_separator", None)
    if separator is not None and any(bare_suffix(stream.path) in DELIMITERS for stream in content.splits.values()):
        check_separator(dataset.vocabulary.ids, separator)
    text_column = getattr(checked, "text_column", TEXT)
    splits = {
        part: replace(split, texts=with_text_column(split.texts, text_column, columns))
        for part, split in dataset.splits.items()
    }
    return replace(dataset, splits=splits)


def load_vocabulary(
    path: str | Path,
    *,
    hierarchy: str | Path | None = None,
    language: str = "en",
    ids: ConceptIds = "uri",
) -> Vocabulary:
    """Load label names from a tab-separated file or from SKOS.

    Args:
        path: The file.
        hierarchy: A tab-separated file of labels and their broader labels; SKOS has its own.
        language: The language of the names to take from SKOS.
        ids: How the data write the ids of SKOS concepts.
    """
    path = as_path(path)
    known = get_args(ConceptIds)
    if ids not in known:
        raise ConfigError(f"vocabulary.ids must be one of {', '.join(known)}, got '{ids}'")
    if not path.is_file():
        raise DataError(f"a vocabulary must be a file of names or of SKOS, there is no file {path}")
    if path.suffix.lower() in SUFFIXES:
        return read_skos(path, language, ids)
    names = read_names(path)
    return names if hierarchy is None else names.described_by(names, read_hierarchy(Path(hierarchy)))


def _read_vocabulary(vocabulary: str | Path | Vocabulary | Mapping[str, Any] | None) -> Vocabulary | None:
    """Return the vocabulary that `load_dataset` was given, in whichever form."""
    if vocabulary is None or isinstance(vocabulary, Vocabulary):
        return vocabulary
    if not isinstance(vocabulary, Mapping):
        return load_vocabulary(vocabulary)
    known = [name for name in signature(load_vocabulary).parameters if name != "path"]
    for option in vocabulary:
        if option not in ("path", *known):
            raise ConfigError(f"unknown option 'vocabulary.{option}'{did_you_mean(option, known)}")
        if not isinstance(vocabulary[option], str | Path | None):
            raise ConfigError(f"vocabulary.{option} must be a text, got {vocabulary[option]!r}")
    if vocabulary.get("path") is None:
        raise ConfigError(f"vocabulary.{known[0]} and others are about a file of names, got no `vocabulary`")
    return load_vocabulary(**vocabulary)


def options_of(source: str | Path, format: str | None = None) -> frozenset[str]:
    """Return the names of the options that the format of `source` has."""
    return frozenset(FORMATS.get(find_format(_find(source), format)).options.model_fields)


def without_password(source: str) -> str:
    """Return the name of a source as it may be shown and kept: without the password of a database."""
    return re.sub(r"(://[^/@]*?):[^/]*@", r"\1:***@", source)


def bundled_datasets() -> list[str]:
    """Return the names of the data sets that come with longtail."""
    root = _bundled()
    return sorted(folder.name for folder in root.iterdir() if folder.is_dir()) if root.is_dir() else []


def _bundled() -> Path:
    return Path(str(files("longtail.data") / "bundled"))


def _title(path: Path) -> str:
    return path.resolve().name if path.is_dir() else bare_stem(path)


def _find(source: str | Path) -> Path | str:
    """Return the file or folder; the address of a database stays a text."""
    if isinstance(source, str) and _ADDRESS.match(source):
        return source
    if not isinstance(source, str | Path):
        raise DataError(
            f"data must be a path, a name or texts with labels by part, got {type(source).__name__}; fit takes tables "
            "as they are, and {'train': (texts, labels)} makes a data set"
        )
    path = as_path(source).expanduser()
    if path.exists():
        return path
    bundled = bundled_datasets()
    if str(source) in bundled:
        return _bundled() / str(source)
    if f"{source}-sample" in bundled:
        raise DataError(
            f"there is no file or folder {source}; the bundled sample of it is named {source}-sample. "
            "For the full data set give the path of its folder."
        )
    if path.is_symlink():
        raise DataError(f"{source} is a link to a file or folder that is not there; give the path of one that is")
    beside = [str(path.with_name(other.name)) for other in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(str(source), [*bundled, *beside])
    raise DataError(
        f"there is no file or folder {source}, nor a bundled data set of that name{hint or '.'} "
        f"Bundled: {', '.join(bundled) or 'none'}. Give the path of a folder, a .jsonl, .csv, .parquet or .txt file."
    )
