"""Tag the texts of all files in a folder; each file is a job of the engine.

    texts/a.parquet, texts/b.parquet  ->  out/a.parquet, out/b.parquet

A file takes its name when it is whole, so that work which was killed goes on where it was: files that are there, and
not older than their texts, are not made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from longtail.data.predicted import check_predictions_path, predictions_file
from longtail.data.texts import read_texts
from longtail.errors import DataError
from longtail.files import write_text
from longtail.methods import load_model
from longtail.methods.base import Method
from longtail.persist import MANIFEST
from longtail.run.local import LocalEngine
from longtail.run.run import Precision, Run

_KEY = "_longtail.json"
_HIDDEN = (".", "_")
"""Begin the names of files that hold no texts."""


@dataclass(frozen=True)
class FolderSpec:
    """How the files of a folder are tagged."""

    model: Path
    """The folder of a trained model, which all machines see, as they see the texts."""
    k: int = 5
    kept: Sequence[str] = ()
    """Fields of the texts that are copied."""
    call: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `Method.predict`, as plain data."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `read_texts`."""
    precision: Precision = "auto"


class FileJob(NamedTuple):
    """A file of texts, and the file for its suggestions."""

    texts: Path
    out: Path

    @property
    def is_done(self) -> bool:
        """Return whether there are suggestions, not older than the texts."""
        return self.out.is_file() and self.out.stat().st_mtime_ns >= self.texts.stat().st_mtime_ns


class TaggedFolder(NamedTuple):
    """What was done."""

    n_files: int
    n_done_before: int
    n_texts: int
    """In the files that were tagged now."""


def tag_folder(spec: FolderSpec, texts: Path, out: Path, *, run: Run | None = None) -> TaggedFolder:
    """Tag each file of the folder `texts` into a file of the folder `out`, whose suffix says in which format."""
    run = run or Run()
    jobs = _jobs(texts.absolute(), out.absolute())
    for job in jobs:
        check_predictions_path(job.out, spec.kept)
    _claim(out, spec)
    todo = [job for job in jobs if not job.is_done]
    n_texts = 0
    with run.progress.step("predict", len(jobs), "files") as advance:
        advance(len(jobs) - len(todo))
        for n_of_file in run.engine.map(partial(tag_file, spec), todo):
            n_texts += n_of_file
            advance(1)
    return TaggedFolder(len(jobs), len(jobs) - len(todo), n_texts)


def tag_file(spec: FolderSpec, job: FileJob) -> int:
    """Tag one file with one thread, and return the number of its texts."""
    model = _opened(spec.model, (spec.model / MANIFEST).stat().st_mtime_ns, spec.precision)
    columns = tuple(dict.fromkeys((*model.columns, *spec.kept)))
    reading = {"usual_options": model.facts_.get("columns", {}), **spec.reading}
    n_texts, run = 0, Run(LocalEngine(1))
    with predictions_file(job.out, spec.kept, with_routes=model.calibration is not None) as write:
        for batch in read_texts(job.texts, columns, **reading):
            write(batch, model.predict(batch, spec.k, run=run, **spec.call))
            n_texts += len(batch)
    return n_texts


@lru_cache(maxsize=1)
def _opened(folder: Path, changed_ns: int, precision: Precision) -> Method:
    return load_model(folder, precision=precision)


def _jobs(texts: Path, out: Path) -> list[FileJob]:
    """Return a job for each file of the folder."""
    files = sorted(path for path in texts.iterdir() if path.is_file() and not path.name.startswith(_HIDDEN))
    if not files:
        raise DataError(f"{texts} must hold files with texts, it has none")
    if texts.samefile(out) if out.exists() else texts == out:
        raise DataError(f"the texts are read from {out}, which must not be written into; choose another `out`")
    suffix = out.suffix or ".parquet"
    return [FileJob(path, out / (path.name if path.suffix == suffix else f"{path.name}{suffix}")) for path in files]


def _claim(out: Path, spec: FolderSpec) -> None:
    """Make `out` the folder for suggestions of this model with these options; raise if it holds others."""
    manifest = hashlib.sha256((spec.model / MANIFEST).read_bytes()).hexdigest()
    about = {"model": manifest, "k": spec.k, "kept": list(spec.kept), "precision": spec.precision}
    key = json.dumps(about | {"call": dict(spec.call), "reading": dict(spec.reading)}, default=str)
    place = out / _KEY
    if place.is_file():
        if place.read_text(encoding="utf-8") != key:
            raise DataError(f"{out} was begun with another model or other options; choose another `out`")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} must be a new folder, or one that was begun by this command; choose another `out`")
    else:
        write_text(place, key)
