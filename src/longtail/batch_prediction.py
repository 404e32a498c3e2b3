"""Tag millions of texts from files into files, at constant memory, and go on where a killed run ended.

    predict_files("my-model", "titles.parquet", "tagged.parquet/")

    tagged.parquet/
      part-00000.parquet   one file per block of texts, in their order; it takes its name when it is whole
      part-00001.parquet
      _longtail.json       model, texts and options that the folder belongs to
      _SUCCESS             there when all parts are

Run again, it leaves out the parts that are there; with another model, other texts or options it is refused. Names that
begin with `_` are left out by what reads such folders (Spark, pyarrow, polars, DuckDB).

`predict_block` is a function of a module over a small spec of paths and options, so that any engine can run it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.data.blocks import TextBlock, count_block, cut_into_blocks, find_files, read_block
from longtail.errors import ConfigError, DataError, LongtailError
from longtail.files import FileLock, as_path, link_target, whole, write_text
from longtail.methods import load_model
from longtail.methods.base import Method
from longtail.persist import revision_of
from longtail.run.local import LocalEngine
from longtail.run.run import Precision, Run
from longtail.scores.call import Call

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_TEXTS = 50_000
ABOUT, COMPLETE = "_longtail.json", "_SUCCESS"
_GROUP_BYTES = 16 << 20
"""A row group of a part is written when it has become so large."""
_OPENING = threading.Lock()


@dataclass(frozen=True)
class PredictedFiles:
    """What `predict_files` did."""

    folder: Path
    n_parts: int
    n_parts_before: int
    """Parts that an earlier run had finished."""
    n_texts: int
    """Texts that were tagged now."""


@dataclass(frozen=True)
class FileOptions:
    """How texts in files are read, tagged and written."""

    call: Call = field(default_factory=Call)
    keep: tuple[str, ...] | None = None
    """Columns to copy; None is all."""
    format: str | None = None
    """Format of the files, as in `longtail.data.texts.read_texts`."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options of the format, such as `text_column`."""
    precision: Precision = "auto"


@dataclass(frozen=True)
class BlockSpec:
    """One block of texts to be tagged."""

    model: Path
    revision: str
    """That of the model: it must not change before all blocks are done."""
    block: TextBlock
    out: Path
    options: FileOptions
    n_threads: int = 1


def predict_files(
    model: str | Path,
    texts: str | Path,
    out: str | Path,
    options: FileOptions | None = None,
    *,
    block_texts: int = BLOCK_TEXTS,
    run: Run | None = None,
) -> PredictedFiles:
    """Tag the texts of a file, or of all files of a folder, into a folder of Parquet files.

    Args:
        model: The folder of a trained model.
        texts: Parquet, which is cut into blocks; or JSON lines, CSV, TSV or lines, one block per file.
        out: The folder; what an earlier run with the same model, texts and options finished there is kept.
        options: How texts are read and tagged.
        block_texts: Texts per block, about.
        run: How the work is done.
    """
    if block_texts < 1:
        raise ConfigError(f"block_texts must be at least 1, got {block_texts}")
    run, folder, opened = run or Run(), link_target(as_path(out)), as_path(model).absolute()
    options = options or FileOptions()
    call = replace(options.call, allow=_tuple(options.call.allow), deny=_tuple(options.call.deny))
    options = replace(options, call=call)
    files = find_files(as_path(texts).absolute())
    about = _about(opened, files, options, block_texts)
    blocks = cut_into_blocks(files, block_texts, options.format)
    if not blocks:
        raise DataError(f"{texts} must hold at least one text, it is empty")
    with _claimed(folder, about):
        outs = [folder / f"part-{number:05d}.parquet" for number in range(len(blocks))]
        specs = [
            BlockSpec(opened, about["model"], block, file, options, _threads_of_block(run))
            for block, file in zip(blocks, outs, strict=True)
            if not file.exists()
        ]
        counts = [count_block(spec.block, options.format) for spec in specs]
        total = None if None in counts else sum(count or 0 for count in counts)
        n_texts = 0
        if specs:
            with run.progress.step("predict", total, "texts") as advance:
                for n_done in run.engine.map(predict_block, specs):
                    n_texts += n_done
                    advance(n_done)
        write_text(folder / COMPLETE, "")
    return PredictedFiles(folder, len(blocks), len(blocks) - len(specs), n_texts)


def predict_block(spec: BlockSpec) -> int:
    """Tag the texts of one block, write its part, and return how many texts it has.

    The part is written under another name and renamed when it is whole, so it may be tried again at any time.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _OPENING:  # threads share one model
        model = _open(spec.model, spec.revision, spec.options.precision)
    options = spec.options
    reading = model.reading(options.keep, dict(options.reading), options.format)
    read = read_block(spec.block, reading)
    labelled = model.tag_stream(read, options.call, Run(LocalEngine(spec.n_threads)))
    n_texts = 0
    with whole(spec.out) as temporary, open(temporary, "wb") as file:
        with pq.ParquetWriter(file, labelled.schema) as writer:
            for table in _row_groups(labelled):
                writer.write_table(table)
                n_texts += len(table)
        file.flush()
        os.fsync(file.fileno())
    pa.default_memory_pool().release_unused()  # it keeps what threads have freed, up to 70 MB
    return n_texts


def _row_groups(batches: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield tables large enough for a row group each."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    n_bytes = 0
    for batch in batches:
        waiting.append(batch)
        n_bytes += batch.nbytes
        if n_bytes >= _GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, n_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@lru_cache(maxsize=1)
def _open(model: Path, revision: str, precision: Precision) -> Method:
    """Return the model; a process opens it once."""
    opened = load_model(model, precision=precision)
    if revision_of(model) != revision:
        raise LongtailError(f"{model} was replaced while texts were tagged; start again, into another folder")
    return opened


def _threads_of_block(run: Run) -> int:
    """Return how many threads a block may use: those of this process, one where an engine has others."""
    return run.engine.n_threads if isinstance(run.engine, LocalEngine) else 1


def _about(model: Path, files: Sequence[Path], options: FileOptions, block_texts: int) -> dict[str, Any]:
    """Return what a folder of predictions belongs to, as plain data."""
    status = [file.stat() for file in files]
    about = {
        "model": revision_of(model),
        "texts": [[file.name, one.st_size, one.st_mtime_ns] for file, one in zip(files, status, strict=True)],
        "options": {**asdict(options), "block_texts": block_texts},
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))
    return plain


@contextmanager
def _claimed(folder: Path, about: Mapping[str, Any]) -> Iterator[None]:
    """Keep other processes from writing a folder of predictions meanwhile; raise if it belongs to something else."""
    lock = FileLock(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        is_free = lock.acquire(wait=False)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if not is_free:
        raise LongtailError(f"{folder} is being written by another process; wait until that ends")
    try:
        _begin(folder, about)
        yield
    finally:
        lock.release()


def _begin(folder: Path, about: Mapping[str, Any]) -> None:
    """Make the folder, or raise if it holds anything but parts of the same predictions."""
    try:
        folder.mkdir(exist_ok=True)
        before = _read_about(folder)
        if before is None and any(not file.name.startswith(".") for file in folder.iterdir()):
            raise ConfigError(f"{folder} holds other files; choose another place for predictions")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if before is None:
        write_text(folder / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
        return
    differs = [name for name in about if before.get(name) != about[name]]
    if differs:
        raise ConfigError(
            f"{folder} was begun with other {' and '.join(differs)}, which must not be mixed; remove it to start "
            "anew, or choose another place"
        )


def _read_about(folder: Path) -> dict[str, Any] | None:
    """Return what a folder of predictions belongs to; None if it says nothing."""
    file = folder / ABOUT
    if not file.is_file():
        return None
    try:
        about = json.loads(file.read_bytes())
    except ValueError as error:
        raise LongtailError(f"{file} is damaged ({error}); remove {folder} to start anew") from error
    return about if isinstance(about, dict) else {}


def _cannot_write(folder: Path, error: OSError) -> LongtailError:
    return LongtailError(f"cannot write {folder}: {error.strerror or error}; choose another place")


def _tuple(labels: Any) -> tuple[str, ...] | None:
    return None if labels is None else tuple(labels)
