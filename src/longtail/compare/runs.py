"""One run of a comparison: train a method, tag the evaluated texts, and keep model, lists and costs.

    OUT/
      data.json             the training texts that the folder is about
      runs/METHOD-KEY/      KEY: a checksum of training texts, options and longtail's version
        model/              the trained model; its manifest has the costs of training
        model.work/         finished stages during training, so that a killed run can continue
        lists-KEY/          predicted lists and their costs; KEY: of the evaluated texts and the tail weight
        log.txt             what the process of the run wrote

Runs do not depend on each other: adding a method to a comparison, or evaluating on another part, does only what is
missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from longtail.compare.costs import CostMeter, Costs
from longtail.data.dataset import TEXT, Dataset, Split
from longtail.errors import ConfigError, DataError, LongtailError, ModelFormatError
from longtail.evaluation import DEV, fingerprint_of, timed_top_k
from longtail.files import write_text
from longtail.methods import load_model
from longtail.methods.base import MODEL, Method
from longtail.persist import Folder, write_folder
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.types import TopK

TRAIN = "train"
_LISTS = "lists"
_DATA = "data.json"


class Entry(NamedTuple):
    """A method in a comparison: its name there, and the untrained model."""

    name: str
    model: Method


class RunResult(NamedTuple):
    """The lists of a finished run and what they cost."""

    lists: TopK  # (n_texts, k) in numbers of the labels that training has
    predict_s: float
    threads: int
    costs: Costs
    model_bytes: int


class ComparedData(NamedTuple):
    """The data of a comparison."""

    dataset: Dataset
    """With the training texts."""
    split: str
    """What the evaluated part is called."""
    evaluated: Split


def choose_parts(dataset: Dataset, split: str | None, seed: int) -> ComparedData:
    """Return the data with the part `split` to evaluate on: by default dev, or a part of train held out by `seed`."""
    if split == TRAIN:
        raise DataError("`split` must not be train: figures on training texts say nothing about new ones")
    if split is not None and (split != DEV or DEV in dataset.splits):
        return ComparedData(dataset, split, dataset.split(split))
    drawn = dataset.hold_out(seed=seed)
    return ComparedData(drawn, DEV if drawn is dataset else "dev (held out)", drawn.dev)


def claim_folder(out: Path, train: Split) -> None:
    """Make `out` the folder of comparisons on these training texts; raise if it holds anything else."""
    key = {"longtail": "compare", "train": fingerprint_of(train, {TEXT}), "n_texts": len(train)}
    place = out / _DATA
    try:
        if place.is_file():
            if place.read_text(encoding="utf-8", errors="replace") != json.dumps(key):
                raise ConfigError(
                    f"{out} holds a comparison on other training texts than these {len(train):,}, or on another part "
                    "held out of them; choose another `out`"
                )
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"{out} exists and is not a comparison of longtail; choose another `out`")
        else:
            out.mkdir(parents=True, exist_ok=True)
            write_text(place, json.dumps(key))
    except OSError as error:
        raise LongtailError(f"cannot write {out}: {error.strerror or error}; choose another `out`") from error


class RunFolder:
    """Where the run of `model` on some texts is kept, in the folder `out` of the comparison."""

    def __init__(self, out: Path, model: Method, train: Split, evaluated: Split) -> None:
        self.method, self.train, self.evaluated = model, train, evaluated
        read = {*model.columns, *model.optional_columns}
        options = {name: value for name, value in model.options.plain().items() if name != "tail_weight"}
        key = {"method": model.name, "options": options, "longtail": version("longtail")}
        self.path = out / "runs" / f"{model.name}-{_digest(key | {'data': fingerprint_of(train, read)})}"
        self.model = self.path / "model"
        self.work = self.path / "model.work"
        self.log = self.path / "log.txt"
        asked = {"split": fingerprint_of(evaluated, read), "tail_weight": model.options.tail_weight}
        self._lists = self.path / f"{_LISTS}-{_digest(asked)}"

    def costs(self) -> Costs | None:
        """Return what training took; None if there is no model yet."""
        try:
            return Costs.of(Folder(self.model, MODEL, verify=False).manifest["data"]["costs"])
        except (ModelFormatError, KeyError):
            return None

    def opened(self) -> Method | None:
        """Return the trained model; None if there is none, or a damaged one."""
        try:
            return None if self.costs() is None else load_model(self.model)
        except ModelFormatError:
            return None

    def result(self, k: int) -> RunResult | None:
        """Return what the run left; None if something is missing, damaged or shorter than `k`."""
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
        return RunResult(
            lists,
            predict_s=float(folder.manifest["predict_s"]),
            threads=int(folder.manifest["threads"]),
            costs=costs,
            model_bytes=size,
        )

    def keep(self, lists: TopK, predict_s: float, threads: int) -> None:
        """Write the lists of the evaluated texts."""
        with write_folder(self._lists, _LISTS) as writer:
            writer.arrays("lists", {"labels": lists.labels, "scores": lists.scores})
            writer.manifest |= {"k": lists.k, "predict_s": predict_s, "threads": threads}


def do_run(folder: RunFolder, *, facts: Mapping[str, Any], k: int, run: Run | None = None) -> None:
    """Train the model unless that was done, and predict `k` labels of each evaluated text.

    A run that was killed continues. The model is saved with `facts` added to its `facts_`, and with a tail weight of
    0, so that one training serves all weights.
    """
    run, options = run or Run(), folder.method.options
    folder.path.mkdir(parents=True, exist_ok=True)
    for left in folder.path.glob(".*.tmp"):  # of a process that was killed while it wrote
        shutil.rmtree(left, ignore_errors=True)
    model, n_threads = folder.opened(), run.engine.n_threads
    if model is None:
        model = type(folder.method).from_options(options.plain() | {"tail_weight": 0.0})
        with CostMeter(folder.path / "spent.json", run) as meter:
            model.fit(folder.train, run=replace(run, progress=meter), work=folder.work, resume=True)
        model.facts_ |= {**facts, "costs": meter.costs().plain()}
        with run.progress.step("save"):
            model.save(folder.model)
        FolderStages(folder.work).close()
        meter.file.unlink(missing_ok=True)
    lists, predict_s = timed_top_k(model, folder.evaluated, k, tail_weight=options.tail_weight, run=run)
    folder.keep(lists, predict_s, n_threads)


def _digest(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
