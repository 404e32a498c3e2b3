"""`longtail review`: queues of texts for people, what they decided, and how it went."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from longtail.cli.flags import Json, Quiet, TextColumn, data_option, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError, DataError

if TYPE_CHECKING:
    from longtail.methods.base import Method
    from longtail.review.adding import Record

DEFAULT_STORE = "reviews.db"
BATCH_TEXTS = 1000

Reviews = Annotated[
    str, option("The review store: a file, or postgresql://user@host/database.", "STORE", "--reviews", "-r")
]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of a queue.")]
Texts = Annotated[
    Path,
    typer.Argument(
        metavar="TEXTS",
        help="A table (.csv, .tsv, .parquet), JSON lines, a file with one text per line, or a folder of documents "
        "(.txt, .pdf, .docx, .epub, .html).",
    ),
]
PerText = Annotated[int | None, option("How many people decide on each text.", "N")]
Overlap = Annotated[float | None, option("Share of the texts on which one more person decides.", "SHARE")]
Order = Annotated[
    str | None,
    option("Which texts come first: file, as they are; uncertain, those least certain to a --model; random.", "NAME"),
]
Blind = Annotated[
    float | None,
    option("Share of the texts that are shown without suggestions, to measure how these sway people.", "SHARE"),
]
Uncertain = Annotated[Path | None, option("The model that tells which texts are uncertain.", "MODEL")]
TextFormatName = Annotated[str | None, data_option("lines, jsonl or table.", "NAME", "--format")]
OneQueue = Annotated[str | None, option("Decisions of this queue only.", "QUEUE")]
ExportTo = Annotated[Path, option("The file to write.", "FILE", "--out", "-o")]
ExportAs = Annotated[
    str,
    option(
        "data, by the suffix (.jsonl, .csv, .tsv, .parquet); annif, a corpus for Annif; log, every decision as one "
        "JSON line.",
        "NAME",
        "--as",
    ),
]
Agree = Annotated[
    str,
    option("Labels that at least half of the people filed, that all or any of them did, or the last one's.", "NAME"),
]


@with_flags
def add(
    queue: QueueName,
    texts: Texts,
    reviews: Reviews = DEFAULT_STORE,
    per_text: PerText = None,
    overlap: Overlap = None,
    order: Order = None,
    blind: Blind = None,
    model: Uncertain = None,
    format: TextFormatName = None,
    text_column: TextColumn = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Add texts to a QUEUE that people review; it is made if it is new, and texts it has are not added again."""
    from longtail.review.store import ReviewStore

    screen = Screen(quiet)
    if not texts.exists():
        raise DataError(f"there is no file or folder {texts}; give texts in a file, or a folder of documents")
    given = {"per_text": per_text, "overlap": overlap, "order": order, "blind": blind}
    with ReviewStore.open(reviews) as store:
        from longtail.review.adding import add_texts, make_queue

        place = make_queue(store, queue, {name: value for name, value in given.items() if value is not None})
        tagger = None
        if place.options.order == "uncertain":
            if model is None:
                raise ConfigError("`order=uncertain` needs a `model` that tells which texts are uncertain")
            from longtail.methods import load_model

            tagger = load_model(model)
        with screen.progress.step("add", None, "texts") as advance:
            added = add_texts(store, place, _records(texts, format, text_column, tagger, advance))
    if as_json:
        write_json({"queue": queue, "added": added.n_texts, "known": added.n_known})
        return
    known = f"; {added.n_known:,} were there already" if added.n_known else ""
    typer.echo(f"{queue}: {added.n_texts:,} texts added{known}")
    where = reviews if "://" not in reviews else "ADDRESS"  # addresses of databases may have passwords
    screen.note(f"longtail serve MODEL --reviews {where} shows them to people")


@with_flags
def show_queues(reviews: Reviews = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the queues and how far they are."""
    from longtail.review.store import ReviewStore
    from longtail.tables import Table

    with ReviewStore.open(reviews, create=False) as store:
        from longtail.review.adding import queues
        from longtail.review.statistics import progress

        rows = [{"queue": queue.name} | progress(store, queue) | queue.options.plain() for queue in queues(store)]
    if as_json:
        write_json(rows)
        return
    head = ["queue", "texts", "done", "claimed", "skipped", "waiting", "per_text", "overlap", "order", "blind"]
    cells = [[f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in head] for row in rows]
    Screen().table(Table(head, cells))


@with_flags
def stats(queue: QueueName, reviews: Reviews = DEFAULT_STORE, as_json: Json = False) -> None:
    """Show what people kept of the suggestions, how much work it was, and how far they agree."""
    from longtail.review.store import ReviewStore

    with ReviewStore.open(reviews, create=False) as store:
        from longtail.review.adding import find_queue
        from longtail.review.statistics import figures

        contents = figures(store, find_queue(store, queue))
    if as_json:
        write_json(contents)
        return
    from longtail.review.tables import review_tables

    screen = Screen()
    for title, table in review_tables(contents):
        screen.table(table, title)


@with_flags
def export(
    out: ExportTo,
    queue: OneQueue = None,
    reviews: Reviews = DEFAULT_STORE,
    kind: ExportAs = "data",
    agree: Agree = "half",
    quiet: Quiet = False,
) -> None:
    """Write what people decided to a file."""
    from longtail.review.store import ReviewStore

    with ReviewStore.open(reviews, create=False):
        from longtail.review.export import write_annif, write_log, write_reviews

    if kind == "log":
        n, what = write_log(reviews, out, queue), "decisions"
    elif kind in ("data", "annif"):
        write = write_reviews if kind == "data" else write_annif
        n, what = write(reviews, out, queue=queue, agree=agree), "texts"
    else:
        raise ConfigError(f"`kind` must be data, annif or log, got '{kind}'")
    Screen(quiet).note(f"{out}: {n:,} {what} written")


def _records(
    texts: Path, format: str | None, text_column: str | None, tagger: Method | None, advance: Any
) -> Iterator[Record]:
    """Yield the texts to be added."""
    from longtail.data.inputs import TEXT, as_table
    from longtail.data.texts import read_texts
    from longtail.review.adding import Record
    from longtail.review.documents import documents_in
    from longtail.review.uncertainty import uncertainties

    if texts.is_dir():
        is_empty = True
        for name, fields in documents_in(texts):
            is_empty = False
            uncertainty = float(uncertainties(tagger, as_table([fields]))[0]) if tagger else 0.0
            yield Record({"id": name, **fields}, uncertainty)
            advance(1)
        if is_empty:
            raise DataError(f"{texts} must hold documents (.txt, .pdf, .docx, .epub, .html), found none")
        return
    options: dict[str, Any] = {"format": format, "text_column": text_column or TEXT, "batch_texts": BATCH_TEXTS}
    for batch in read_texts(texts, tagger.columns if tagger else (TEXT,), **options):
        values = uncertainties(tagger, batch).tolist() if tagger else [0.0] * len(batch)
        for fields, uncertainty in zip(batch.to_pylist(), values, strict=True):
            if any(value.strip() for value in fields.values()):
                yield Record(cast(dict[str, str], fields), uncertainty)
        advance(len(batch))
