"""Load data for a method, train it and save it in a folder, so that a killed training can go on.

OUT         the model, once it is whole
OUT.work    finished stages while it is trained; kept when training fails, removed when the model is saved
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from longtail.data.dataset import Dataset, Split
from longtail.data.join import joined
from longtail.data.load import load_dataset, options_of, without_password
from longtail.errors import LongtailError
from longtail.files import FileLock
from longtail.methods.base import Method
from longtail.run.log import LOG
from longtail.run.processes import is_main_process
from longtail.run.progress import SILENT, Progress
from longtail.run.run import Run
from longtail.run.stages import FolderStages


def work_folder(out: Path) -> Path:
    """Return the folder where finished stages are kept while the model or file `out` is made."""
    return out.with_name(f"{out.name}.work")


def load_for(model: Method, data: Mapping[str, Any], progress: Progress = SILENT) -> Dataset:
    """Load a data set for `model`; a trained model remembers the columns of its data.

    `data` are arguments of `load_dataset` by name. What they do not say of columns is as it was in training.
    """
    remembered = getattr(model, "facts_", {}).get("columns", {})
    return load_dataset(**data, columns=model.columns, usual_options=remembered, progress=progress)


def load_with_further(
    model: Method, data: Mapping[str, Any], further: str, split: str = "train", progress: Progress = SILENT
) -> Dataset:
    """Load two data sets for `model`, and return one whose part `split` has the texts of both.

    Where both have a text, its labels are those of `data`: decisions of people win over the archive they correct.

    Args:
        model: The method that will be trained.
        data: Arguments of `load_dataset` by name. Each format gets the options that it has.
        further: The second source.
        split: The part of both; a source that has only one part gives that.
        progress: Is told how many texts are read.
    """
    others = ("source", "format", "vocabulary")
    mine, its = options_of(data["source"], data.get("format")), options_of(further)
    first_data = {name: data[name] for name in data if name in others or name in mine or name not in its}
    further_data = {name: data[name] for name in data if name == "vocabulary" or name in its}
    first = load_for(model, first_data, progress)
    second = load_for(model, {**further_data, "source": further}, progress)
    texts = joined(_part(first, split), _part(second, split))
    facts = {**first.facts, "columns": {**second.facts.get("columns", {}), **first.facts.get("columns", {})}}
    name = f"{first.name} + {second.name}"
    return Dataset(name, {split: texts}, texts.vocabulary, facts, texts.official)


def _part(dataset: Dataset, name: str) -> Split:
    return next(iter(dataset.splits.values())) if len(dataset.splits) == 1 else dataset.split(name)


def data_facts(dataset: Dataset, source: str, split: str) -> dict[str, Any]:
    """Return what a model remembers of its data: name, source, split, columns, and how a part was held out."""
    kept = {name: dataset.facts[name] for name in ("columns", "held_out") if dataset.facts.get(name)}
    return {"name": dataset.name, "source": without_password(source), "split": split} | kept


def fit_and_save(
    model: Method,
    split: Split,
    out: Path,
    *,
    facts: Mapping[str, Any] | None = None,
    resume: bool = False,
    run: Run | None = None,
) -> None:
    """Train `model` on `split` and save it to `out`.

    Of several processes that train it together, only the main one saves.

    Args:
        model: An untrained method.
        split: The training texts.
        out: The folder of the model; an older model there is replaced at the very end.
        facts: What to add to the model's `facts_`.
        resume: Use the stages that an unfinished training left.
        run: How training is carried out; the stages are kept beside `out`.
    """
    run = run or Run()
    work = work_folder(out)
    try:
        model.fit(split, run=run, work=work, resume=resume)
        model.facts_ |= facts or {}
        with run.progress.step("save"):
            model.save(out)
    except (KeyboardInterrupt, LongtailError):
        tell_kept(work, "stages")
        raise
    if is_main_process():
        FolderStages(work).close()


def tell_kept(work: Path, what: str) -> None:
    """Log that finished stages or trials are kept in `work`, if there are any and nobody else uses them."""
    lock = FileLock(work)
    with suppress(OSError):  # a place that cannot be written to keeps nothing
        if work.exists() and lock.acquire(wait=False):
            lock.release()
            LOG.warning(f"finished {what} are kept in {work}; the same call with `resume` goes on")
