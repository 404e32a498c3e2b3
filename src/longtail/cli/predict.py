"""`longtail predict`: texts in, label ids, names and scores out, some texts at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from longtail.cli.flags import (
    EngineFlags,
    PrecisionFlags,
    TailWeight,
    TextColumn,
    Threshold,
    data_option,
    option,
    read_options,
    threshold_of,
    with_flags,
)
from longtail.cli.screen import Screen
from longtail.errors import ConfigError, DataError
from longtail.run.progress import SILENT

if TYPE_CHECKING:
    import pyarrow as pa

    from longtail.data.predicted import Write
    from longtail.methods.base import Method, Suggestion

STDIN = "-"
BAR_WIDTH = 12
SHOWN_CHARACTERS = 300

TextsFile = Annotated[
    str,
    typer.Argument(
        metavar="TEXTS",
        help="A file with one text per line, or .jsonl, .csv, .tsv, .parquet; a folder of these; - is standard input.",
    ),
]
GivenTexts = Annotated[list[str] | None, option("A text. May be repeated.", "TEXT", "--text", "-t")]
K = Annotated[int, option("Labels per text.", "N", "-k", "--k")]
PredictOut = Annotated[
    Path | None,
    option(
        "A .jsonl, .csv, .tsv (also .gz, .zst) or .parquet file for the suggestions; a folder of such a name for those "
        "of a folder, one file for each, where files that are done are left as they are.",
        "FILE",
        "--out",
        "-o",
    ),
]
Keep = Annotated[str | None, option("Fields to copy to the output, such as text,id.", "NAMES")]


@dataclass(frozen=True)
class SuggestionFlags:
    """Which labels are suggested."""

    threshold: Threshold = None
    min_precision: Annotated[
        float | None,
        option(
            "Instead of --k: as many labels as there can be while at least this share of all labels is right. Needs "
            "calibrated scores.",
            "SHARE",
        ),
    ] = None
    min_recall: Annotated[
        float | None,
        option(
            "Instead of --k: as few labels as there can be while they are at least this share of a text's labels, in "
            "the mean. Needs calibrated scores.",
            "SHARE",
        ),
    ] = None
    tail_weight: TailWeight = None
    allow: Annotated[
        list[str] | None,
        option(
            "Suggest only this label (id or name) or branch of the hierarchy (science/*). May be repeated.", "LABEL"
        ),
    ] = None
    deny: Annotated[list[str] | None, option("Never suggest this label or branch. May be repeated.", "LABEL")] = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Method.predict` by name."""
        lists = {"allow": self.allow or None, "deny": self.deny or None}
        return {**vars(self), **lists, "threshold": threshold_of(self.threshold)}


@dataclass(frozen=True)
class TextFlags:
    """Texts to be tagged, and how they are read."""

    texts: TextsFile = STDIN
    format: Annotated[str | None, data_option("lines, jsonl or table.", "NAME", "--format")] = None
    text_column: TextColumn = None
    read: Annotated[
        list[str] | None,
        data_option(
            "Another option of the format (delimiter=|, on_bad_utf8=replace). May be repeated.", "OPTION=VALUE"
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return arguments of `read_texts` by name, as plain data."""
        from longtail.data.texts import read_texts

        return read_options(read_texts, {"text_column": self.text_column}, self.read) | {"format": self.format}

    def batches(self, model: Method, columns: tuple[str, ...], screen: Screen) -> tuple[Iterator[pa.Table], int | None]:
        """Return the texts in batches, and how many there are if a bar will show it."""
        from longtail.data.texts import count_texts, read_texts

        options = self.options() | {"usual_options": model.facts_.get("columns", {})}
        if self.texts == STDIN:
            if sys.stdin.isatty():
                screen.note("type a text and press Enter; Ctrl-D ends")
            options["format"] = options["format"] or "lines"
            return read_texts("standard input", columns, **options, stream=cast(Any, sys.stdin.buffer)), None
        if not Path(self.texts).exists():
            raise DataError(f"there is no file {self.texts}; a text itself is given with --text")
        total = count_texts(self.texts, options["format"]) if screen.progress is not SILENT else None
        return read_texts(self.texts, columns, **options), total


@with_flags
def predict(
    model: PrecisionFlags,
    texts: TextFlags,
    suggested: SuggestionFlags,
    flags: EngineFlags,
    text: GivenTexts = None,
    k: K = 5,
    out: PredictOut = None,
    keep: Keep = None,
) -> None:
    """Tag texts with a trained model."""
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    screen = flags.screen
    kept = [name.strip() for name in keep.split(",")] if keep else []
    if text is None and texts.texts != STDIN and Path(texts.texts).is_dir():
        _tag_folder(model, texts, suggested, flags, k=k, out=out, kept=kept)
        return
    is_replaced = _check_out(out, kept, None if text else texts.texts)
    answers_shown = out is None and sys.stdout.isatty()
    pretty = answers_shown and not flags.as_json
    quiet = replace(flags.run, progress=SILENT)
    progress = SILENT if answers_shown else screen.progress  # a bar between the answers would only be in their way
    tagger = model.open(screen.progress, model.precision)
    n_labels = len(tagger.scored_labels_)
    if k > n_labels:
        screen.note(f"note: the model knows {n_labels:,} labels; k = {k:,} gives {n_labels:,}")
    columns = tuple(dict.fromkeys((*tagger.columns, *kept)))
    total: int | None = None
    if text is not None:
        from longtail.data.inputs import as_table

        batches: Iterator[pa.Table] = iter([as_table({name: text for name in {"text", *columns}})])
        total = len(text)
    else:
        batches, total = texts.batches(tagger, columns, screen)
    writer = nullcontext(None) if pretty else _writer(out, kept, with_routes=tagger.calibration is not None)
    with writer as write, progress.step("predict", total, "texts") as advance:
        for batch in batches:
            suggestions = tagger.predict(batch, k, **suggested.arguments(), run=quiet)
            if write is None:
                for row, labels in enumerate(suggestions):
                    route = "" if suggestions.routes is None else suggestions.routes[row]
                    show_suggestions(screen, batch["text"][row].as_py(), labels, route)
            else:
                write(batch, suggestions)
            if out is None:
                sys.stdout.flush()
            advance(len(batch))
    if out is not None:
        screen.note(f"{out}: written" + (", an older file was replaced" if is_replaced else ""))


def _tag_folder(
    model: PrecisionFlags,
    texts: TextFlags,
    suggested: SuggestionFlags,
    flags: EngineFlags,
    *,
    k: int,
    out: Path | None,
    kept: Sequence[str],
) -> None:
    """Tag each file of a folder into one of the folder `out`."""
    from longtail.folder_prediction import FolderSpec, tag_folder

    if out is None:
        raise ConfigError(f"{texts.texts} is a folder of files with texts; --out must name a folder for suggestions")
    model.open(flags.screen.progress, model.precision)  # what is wrong with it is reported before anything is made
    spec = FolderSpec(
        model=model.model.absolute(),
        k=k,
        kept=tuple(kept),
        call=suggested.arguments(),
        reading=texts.options(),
        precision=cast(Any, model.precision),
    )
    done = tag_folder(spec, Path(texts.texts), out, run=flags.run)
    before = f", {done.n_done_before:,} done before" if done.n_done_before else ""
    flags.screen.note(f"{out}: {done.n_files:,} files{before}; {done.n_texts:,} texts tagged")


def _check_out(out: Path | None, kept: Sequence[str], texts: str | None) -> bool:
    """Return whether a file will be replaced; raise if it must not be, or if nothing can be written there."""
    if out is None:
        return False
    from longtail.data.predicted import check_predictions_path

    check_predictions_path(out, kept)
    is_replaced = out.is_file()
    if is_replaced and texts is not None and _is_same_file(texts, out):
        raise DataError(f"the texts are read from {out}, which must not be replaced; choose another `out`")
    return is_replaced


def _is_same_file(texts: str, out: Path) -> bool:
    with suppress(OSError):  # standard input need not be a file
        source = os.fstat(sys.stdin.fileno()) if texts == STDIN else Path(texts).stat()
        return os.path.samestat(source, out.stat())
    return False


def _writer(out: Path | None, kept: Sequence[str], *, with_routes: bool) -> AbstractContextManager[Write]:
    """Open standard output, for JSON lines, or a file."""
    from longtail.data.predicted import json_lines, predictions_file

    if out is None:
        return nullcontext(json_lines(sys.stdout.buffer, kept))
    return predictions_file(out, kept, with_routes=with_routes)


def show_suggestions(screen: Screen, text: str, labels: list[Suggestion], route: str = "") -> None:
    """Show a text, its route, and its labels with a bar for each score."""
    from rich.text import Text

    start = " ".join(text[:SHOWN_CHARACTERS].split())
    screen.console.print(Text(start + (" …" if len(text) > SHOWN_CHARACTERS else ""), style="bold"))
    for label in labels:
        line = Text(f"  {label.score:.2f} ")
        line.append(("━" * max(1, round(BAR_WIDTH * min(label.score, 1)))).ljust(BAR_WIDTH), style="cyan")
        line.append(f" {label.name}")
        line.append("" if label.id == label.name else f"  {label.id}", style="dim")
        screen.console.print(line)
    if not labels:
        screen.console.print("  no label", style="dim")
    if route:
        screen.console.print(f"  route: {route}", style="dim")
    screen.console.print()
