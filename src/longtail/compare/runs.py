"""One run of a comparison: a method is trained, tags the evaluated texts, and is measured. All of it is kept.

    OUT/
      data.json             which texts are compared on: a folder is of one data set
      runs/METHOD-KEY/      KEY: a checksum of training texts, options and longtail's version
        model/              the trained model; its manifest says what training took
        model.work/         finished stages while it is trained: a killed run goes on
        lists-KEY/          predicted lists and what they took; KEY: of the evaluated texts and the tail weight
        log.txt             what its process wrote

A run needs no other: adding a method to a comparison, or evaluating on another part, does only what is missing.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from longtail.data.dataset import TEXT, Dataset, Split
from longtail.engines.local import LocalEngine, available_cores
from longtail.errors import ConfigError, DataError, LongtailError, ModelFormatError
from longtail.evaluation import DEV, timed_top_k
from longtail.machine import peak_memory_bytes
from longtail.methods import load_model
from longtail.methods.base import MODEL, Method
from longtail.options import Options
from longtail.persist import Folder, write_folder
from longtail.progress import COMPILING, SILENT, Advance, Progress
from longtail.stages import FolderStages
from longtail.types import TopK

TRAIN = "train"
_LISTS = "lists"
_DATA = "data.json"
_TICK_S = 1.0


class Entry(NamedTuple):
    """What is compared: a name, and an untrained model."""

    name: str
    model: Method


class Costs(Options):
    """What training took."""

    train_s: float
    """Seconds of training, over all sittings; without compiling kernels and without reading data."""
    sittings: int
    """1 where training was never interrupted."""
    peak_memory_bytes: int | None
    gpu_peak_bytes: int
    threads: int
    machine: str
    """Processor and number of cores: times of different machines cannot be compared."""


class Found(NamedTuple):
    """What a finished run left."""

    lists: TopK  # (n_texts, k) in numbers of the labels that training has
    predict_s: float
    threads: int
    costs: Costs
    model_bytes: int


def choose_parts(dataset: Dataset, name: str | None, seed: int) -> tuple[Dataset, str, Split]:
    """The data with a dev part, what is evaluated on is called, and that part: dev, or a part of train held out."""
    if name == TRAIN:
        raise DataError("--split must not be train: figures on training texts say nothing about new ones")
    if name is not None and (name != DEV or DEV in dataset.splits):
        return dataset, name, dataset.split(name)
    drawn = dataset.hold_out(seed=seed)
    return drawn, DEV if drawn is dataset else "dev (held out)", drawn.dev


def belongs_to(out: Path, train: Split) -> None:
    """Make `out` the folder of comparisons on these training texts, or refuse one that is somebody else's."""
    own = {"longtail": "compare", "train": _fingerprint(train, {TEXT}), "n_texts": len(train)}
    place = out / _DATA
    try:
        if place.is_file():
            found = place.read_text(encoding="utf-8", errors="replace")
            if found != json.dumps(own):
                raise ConfigError(
                    f"{out} holds a comparison on other training texts than these {len(train):,}, or on another part "
                    "held out of them; choose another --out"
                )
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"{out} exists and is not a comparison of longtail; choose another --out")
        else:
            out.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(own), encoding="utf-8")
    except OSError as error:
        raise LongtailError(f"cannot write {out}: {error.strerror or error}; choose another --out") from error


class RunFolder:
    """Where the run of a model on some texts is kept."""

    def __init__(self, out: Path, model: Method, train: Split, evaluated: Split) -> None:
        read = {*model.columns, *model.optional_columns}
        options = {name: value for name, value in model.options.plain().items() if name != "tail_weight"}
        key = {"method": model.name, "options": options, "longtail": version("longtail")}
        self.path = out / "runs" / f"{model.name}-{_digest(key | {'data': _fingerprint(train, read)})}"
        self.model = self.path / "model"
        self.work = self.path / "model.work"
        self.log = self.path / "log.txt"
        asked = {"split": _fingerprint(evaluated, read), "tail_weight": model.tail_weight}
        self._lists = self.path / f"{_LISTS}-{_digest(asked)}"

    def costs(self) -> Costs | None:
        """What training took; None where there is no model yet."""
        try:
            return Costs.of(Folder(self.model, MODEL, verify=False).manifest["data"]["costs"])
        except (ModelFormatError, KeyError):
            return None

    def opened(self) -> Method | None:
        """The trained model; None where there is none, or a damaged one."""
        try:
            return None if self.costs() is None else load_model(self.model)
        except ModelFormatError:
            return None

    def found(self, k: int) -> Found | None:
        """What the run left; None where something is missing, damaged or shorter than `k`."""
        costs = self.costs()
        try:
            folder = Folder(self._lists, _LISTS)
        except ModelFormatError:
            return None
        if costs is None or folder.manifest["k"] < k:
            return None
        arrays = folder.arrays("lists")
        size = sum(int(facts["bytes"]) for facts in Folder(self.model, MODEL, verify=False).manifest["files"].values())
        lists = TopK(arrays["labels"], arrays["scores"])
        return Found(lists, float(folder.manifest["predict_s"]), int(folder.manifest["threads"]), costs, size)

    def keep(self, lists: TopK, predict_s: float, threads: int) -> None:
        """Write the lists of the evaluated texts."""
        with write_folder(self._lists, _LISTS) as writer:
            writer.arrays("lists", {"labels": lists.labels, "scores": lists.scores})
            writer.manifest |= {"k": lists.k, "predict_s": predict_s, "threads": threads}


def do_run(
    run: RunFolder,
    model: Method,
    train: Split,
    evaluated: Split,
    facts: dict[str, Any],
    k: int,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> None:
    """Train `model` unless that was done, and predict `k` labels of each evaluated text; goes on where it was killed.

    The model is saved with a tail weight of 0, so that one training serves all.
    """
    n_threads = LocalEngine(threads).n_threads
    run.path.mkdir(parents=True, exist_ok=True)
    for left in run.path.glob(".*.tmp"):  # of a process that was killed while it wrote
        shutil.rmtree(left, ignore_errors=True)
    weight, trained = model.tail_weight, run.opened()
    if trained is None:
        model.tail_weight = 0.0
        with _Watch(run.path / "spent.json", progress) as watch:
            model.fit(train, threads=threads, progress=watch, work=run.work, resume=True)
        costs = watch.costs(n_threads)
        model.facts_ |= facts | {"costs": costs.plain()}
        with progress.step("save"):
            model.save(run.model)
        FolderStages(run.work).close()
        watch.file.unlink(missing_ok=True)
        trained = model
    trained.tail_weight = weight
    run.keep(*timed_top_k(trained, evaluated, k, threads, progress), n_threads)


class _Watch:
    """How long a training takes, over all its sittings: written down as it advances, since it may be killed."""

    def __init__(self, file: Path, progress: Progress) -> None:
        self.file, self.progress = file, progress
        try:
            self.before = json.loads(file.read_bytes())
        except (OSError, ValueError):
            self.before = {"train_s": 0.0, "sittings": 0, "peak": 0, "gpu": 0}
        self._compiled_s = self._written = 0.0
        self._watching = False
        self._start = time.monotonic()

    def __enter__(self) -> _Watch:
        from longtail.kernels.native.jit import on_compile

        shown = ExitStack()
        began = 0.0

        def started() -> None:
            nonlocal began
            began = time.monotonic()
            if self._watching:
                shown.enter_context(self.progress.step(COMPILING))

        def ended() -> None:
            shown.close()
            self._compiled_s += time.monotonic() - began

        on_compile(started, ended)
        self._start, self._watching = time.monotonic(), True
        return self

    def __exit__(self, *error: object) -> None:
        self._watching = False
        self._write()

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """See `Progress.step`."""
        self._tick()
        with self.progress.step(name, total, unit) as show:

            def advance(amount: int, note: str = "") -> None:
                self._tick()
                show(amount, note)

            yield advance

    def costs(self, n_threads: int) -> Costs:
        """Of all sittings together."""
        spent = self._spent()
        return Costs(
            train_s=spent["train_s"],
            sittings=spent["sittings"],
            peak_memory_bytes=spent["peak"] or None,
            gpu_peak_bytes=spent["gpu"],
            threads=n_threads,
            machine=f"{platform.processor() or platform.machine()}, {available_cores()} cores",
        )

    def _spent(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._start - self._compiled_s
        return {
            "train_s": self.before["train_s"] + seconds,
            "sittings": self.before["sittings"] + 1,
            "peak": max(self.before["peak"], peak_memory_bytes() or 0),
            "gpu": max(self.before["gpu"], _gpu_bytes()),
        }

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._written > _TICK_S:
            self._written = now
            self._write()

    def _write(self) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(self._spent()), encoding="utf-8")
        beside.replace(self.file)


def _gpu_bytes() -> int:
    if "torch" not in sys.modules:
        return 0
    from longtail.nn.devices import gpu_bytes

    return gpu_bytes()


def _fingerprint(split: Split, columns: set[str]) -> str:
    """A checksum of what is read of a split: further columns make no other data of it."""
    names = [name for name in split.texts.column_names if name in columns]
    return replace(split, texts=split.texts.select(names)).fingerprint


def _digest(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
