"""`longtail predict`: texts in, label ids, names and scores out, some texts at a time."""

from __future__ import annotations

import os
import sys
import time
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
    from longtail.scores.call import Call

STDIN = "-"
BAR_WIDTH = 12
SHOWN_CHARACTERS = 300

TextsFile = Annotated[
    str,
    typer.Argument(
        metavar="TEXTS",
        help="A file with one text per line, or .jsonl, .csv, .tsv, .parquet; - is standard input; a folder of files "
        "where --out is a folder too.",
    ),
]
GivenTexts = Annotated[list[str] | None, option("A text. May be repeated.", "TEXT", "--text", "-t")]
K = Annotated[int, option("Labels per text.", "N", "-k", "--k")]
PredictOut = Annotated[
    str | None,
    option(
        "A .jsonl, .csv, .tsv (also .gz, .zst) or .parquet file for the suggestions; or a folder (out.parquet/), which "
        "gets one Parquet file per block of texts and is completed when the command is run again.",
        "FILE|FOLDER/",
        "--out",
        "-o",
    ),
]
Keep = Annotated[
    str | None, option("Fields to copy to the output, such as text,id; to a folder, all by default.", "NAMES")
]
BlockTexts = Annotated[
    int | None, option("Texts per file where --out is a folder and TEXTS is Parquet; 50,000 by default.", "N")
]


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

    def call(self, k: int) -> Call:
        """Return the same as one call."""
        from longtail.scores.call import Call

        return Call(k, **self.arguments())


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
    block_texts: BlockTexts = None,
) -> None:
    """Tag texts with a trained model."""
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    kept = [name.strip() for name in keep.split(",")] if keep else []
    if out is not None and (out.endswith(("/", os.sep)) or Path(out).is_dir() or Path(texts.texts).is_dir()):
        if text is not None or texts.texts == STDIN:
            raise ConfigError(
                "a folder of predictions is made from a file or a folder of texts; choose a file as `out`"
            )
        into = FolderOutput(Path(out), tuple(kept) if keep else None, block_texts)
        into.write(model, texts, suggested.call(k), flags)
    else:
        _predict_at_once(model, texts, suggested, flags, text, k=k, out=None if out is None else Path(out), kept=kept)


def _predict_at_once(
    model: PrecisionFlags,
    texts: TextFlags,
    suggested: SuggestionFlags,
    flags: EngineFlags,
    text: list[str] | None,
    *,
    k: int,
    out: Path | None,
    kept: list[str],
) -> None:
    """Write suggestions to a file or to standard output, from the first text to the last."""
    screen = flags.screen
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


@dataclass(frozen=True)
class FolderOutput:
    """A folder of Parquet files that is completed when the command is run again."""

    folder: Path
    keep: tuple[str, ...] | None
    block_texts: int | None

    def write(self, model: PrecisionFlags, texts: TextFlags, call: Call, flags: EngineFlags) -> None:
        """Tag all texts of a file or a folder into it, and say how fast that was."""
        from longtail.batch_prediction import BLOCK_TEXTS, FileOptions, predict_files
        from longtail.data.texts import read_texts

        screen, start = flags.screen, time.perf_counter()
        model.open(screen.progress, model.precision)  # faults of the model and --verify
        reading = read_options(read_texts, {"text_column": texts.text_column}, texts.read)
        options = FileOptions(call, self.keep, texts.format, reading, cast(Any, model.precision))
        block_texts = BLOCK_TEXTS if self.block_texts is None else self.block_texts
        done = predict_files(model.model, texts.texts, self.folder, options, block_texts=block_texts, run=flags.run)
        rate = done.n_texts / max(time.perf_counter() - start, 1e-9)
        before = f"; {done.n_parts_before:,} were there already" if done.n_parts_before else ""
        screen.note(f"{self.folder}: {done.n_parts:,} files{before}; {done.n_texts:,} texts now, {rate:,.0f}/s")


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
