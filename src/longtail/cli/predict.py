"""`longtail predict`: texts in, label ids, names and scores out, some texts at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from longtail.cli.flags import DATA_PANEL, Json, Model, PrecisionName, Quiet, TailWeight, TextColumn, Threads
from longtail.cli.screen import Screen
from longtail.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = "-"
SCORE_DIGITS = 6
BAR = 12
SHOWN_CHARACTERS = 300

TextsFile = Annotated[
    str,
    typer.Argument(
        metavar="TEXTS", help="A file with a text a line, or .jsonl, .csv, .tsv, .parquet; - is standard input."
    ),
]
Said = Annotated[list[str] | None, typer.Option("--text", "-t", metavar="TEXT", help="A text. May be repeated.")]
K = Annotated[int, typer.Option("-k", "--k", metavar="N", help="Labels a text.")]
PredictOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where JSON lines go; .gz and .zst are compressed.")
]
Threshold = Annotated[float | None, typer.Option(metavar="SCORE", help="Leave out labels that score less.")]
Keep = Annotated[str | None, typer.Option(metavar="NAMES", help="Fields to copy to the output, such as text,id.")]
TextFormatName = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="lines, jsonl or table.", rich_help_panel=DATA_PANEL)
]
ReplaceBad = Annotated[
    bool, typer.Option("--replace-bad-utf8", help="Put U+FFFD where bytes are not UTF-8.", rich_help_panel=DATA_PANEL)
]


def predict(
    model: Model,
    texts: TextsFile = STDIN,
    text: Said = None,
    k: K = 5,
    out: PredictOut = None,
    threshold: Threshold = None,
    keep: Keep = None,
    tail_weight: TailWeight = None,
    format: TextFormatName = None,
    text_column: TextColumn = None,
    replace_bad_utf8: ReplaceBad = False,
    threads: Threads = None,
    precision: PrecisionName = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Tag texts with a trained model."""
    from longtail.methods import load_model

    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    screen = Screen(quiet)
    tagger = load_model(model, precision=cast(Any, precision))
    if tail_weight is not None:
        tagger.tail_weight = tail_weight
    n_labels = len(tagger.vocabulary_)
    if k > n_labels:
        screen.note(f"note: the model knows {n_labels:,} labels; k = {k:,} gives {n_labels:,}")
    kept = [name.strip() for name in keep.split(",")] if keep else []
    columns = tuple(dict.fromkeys((*tagger.columns, *kept)))
    if text is not None:
        import pyarrow as pa

        batches: Iterator[pa.Table] = iter([pa.table({name: text for name in {"text", *columns}})])
        total: int | None = len(text)
    else:
        how = {"optional": tagger.optional_columns, "on_bad_utf8": "replace" if replace_bad_utf8 else "error"}
        batches, total = _read(
            texts, columns, format, how | ({"text_column": text_column} if text_column else {}), screen
        )
    pretty = out is None and not as_json and sys.stdout.isatty()
    with _target(out) as stream, _watched(screen, total, pretty) as advance:
        for batch in batches:
            found = tagger.top_k(batch, k, threads=threads)
            for row in range(len(batch)):
                labels = [s for s in tagger.named(found, row) if threshold is None or s.score >= threshold]
                if pretty:
                    _draw(screen, batch["text"][row].as_py(), labels)
                else:
                    fields = {name: batch[name][row].as_py() for name in kept}
                    stream.write(_line(fields, labels))
            if out is None:
                stream.flush()
            advance(len(batch))
    if out is not None:
        screen.note(f"{out}: written")


def _read(
    texts: str, columns: tuple[str, ...], format: str | None, options: dict[str, Any], screen: Screen
) -> tuple[Iterator[pa.Table], int | None]:
    """The texts, and how many there are where a bar will show it."""
    from longtail.data.texts import count_texts, read_texts, text_format
    from longtail.errors import did_you_mean
    from longtail.progress import SILENT

    if format not in (None, "lines", "jsonl", "table"):
        raise ConfigError(f"--format must be lines, jsonl or table, got '{format}'{did_you_mean(format, ['jsonl'])}")
    if texts == STDIN:
        if sys.stdin.isatty():
            screen.note("type a text and press Enter; Ctrl-D ends")
        options |= {"format": format or "lines", "stream": sys.stdin.buffer}
        return read_texts("standard input", columns, **options), None
    if not Path(texts).exists():
        raise DataError(f"there is no file {texts}; a text itself is given with --text")
    known = format or text_format(Path(texts))
    total = count_texts(texts, known) if screen.progress is not SILENT else None  # type: ignore[arg-type]
    return read_texts(texts, columns, format=known, **options), total  # type: ignore[arg-type]


@contextmanager
def _target(out: Path | None) -> Iterator[Any]:
    """A stream of text: standard output, or a file that stands only when all went well."""
    if out is None:
        yield sys.stdout
        return
    import pyarrow as pa

    from longtail.data.write import whole

    with whole(out) as temporary, pa.output_stream(str(temporary)) as sink:
        yield _Encoded(sink)


class _Encoded:
    def __init__(self, sink: IO[bytes]) -> None:
        self.sink = sink

    def write(self, text: str) -> None:
        self.sink.write(text.encode())


@contextmanager
def _watched(screen: Screen, total: int | None, pretty: bool) -> Iterator[Any]:
    if pretty:  # a bar between the answers would only be in their way
        yield lambda amount: None
        return
    with screen.progress.step("predict", total, "texts") as advance:
        yield advance


def _line(fields: dict[str, Any], labels: list[Any]) -> str:
    found = [{"id": s.id, "name": s.name, "score": round(s.score, SCORE_DIGITS)} for s in labels]
    return json.dumps({**fields, "labels": found}, ensure_ascii=False) + "\n"


def _draw(screen: Screen, text: str, labels: list[Any]) -> None:
    from rich.text import Text

    shown = " ".join(text[:SHOWN_CHARACTERS].split())
    more = " …" if len(text) > SHOWN_CHARACTERS else ""
    screen.paper.print(Text(f"{shown}{more}", style="bold"))
    for label in labels or ():
        line = Text(f"  {label.score:.2f} ")
        line.append(("━" * max(1, round(BAR * min(label.score, 1)))).ljust(BAR), style="cyan")
        line.append(f" {label.name}")
        line.append("" if label.id == label.name else f"  {label.id}", style="dim")
        screen.paper.print(line)
    if not labels:
        screen.paper.print("  no label", style="dim")
    screen.paper.print()
