"""Write predictions, some texts at a time, in the format that a file's name says.

    .jsonl                one object per text: the fields that are kept, and `labels`, a list of id, name and score;
                          predicted_recall and route, if scores are calibrated
    .csv .tsv .parquet    one row per suggestion: row (of the text, from 0), the fields that are kept, rank (from 1),
                          label_id, label_name, score, and predicted_recall and route of the text, if scores are
                          calibrated; in .csv and .tsv a quote stands before what looks like a formula

Libraries for tables are imported when a table is written, so that tagging lines of text starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from longtail.data.lines import COMPRESSIONS, bare_suffix
from longtail.errors import DataError
from longtail.files import is_stream
from longtail.predictions import Predictions
from longtail.tables import json_text

Write: TypeAlias = Callable[[pa.Table, Predictions], Any]
"""Writes the suggestions for some texts."""

SCORE_DIGITS = 6
_JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_COLUMNS = {
    "rank": pa.int64(),
    "label_id": pa.string(),
    "label_name": pa.string(),
    "score": pa.float64(),
}
_OF_TEXTS = {"predicted_recall": pa.float64(), "route": pa.string()}


def check_predictions_path(path: Path, kept: Sequence[str]) -> None:
    """Raise if predictions cannot be written to a file of this name with these fields."""
    suffix = bare_suffix(path)
    if suffix in _JSON_LINES or is_stream(path):
        return
    if suffix not in (*_DELIMITERS, *_PARQUET) or (suffix in _PARQUET and path.suffix.lower() in COMPRESSIONS):
        raise DataError(
            f"a file of predictions must end in .jsonl, .csv, .tsv (also .gz, .zst) or .parquet, got {path.name}"
        )
    taken = [name for name in kept if name in ("row", *_COLUMNS, *_OF_TEXTS)]
    if taken:
        raise DataError(
            f"a table of predictions has a column {taken[0]} of its own; `keep` other fields, or write .jsonl"
        )


@contextmanager
def predictions_file(path: Path, kept: Sequence[str], *, with_routes: bool = False) -> Iterator[Write]:
    """Open a file for the suggestions and the fields `kept`; it takes its name only when all went well.

    Tables have the columns of `with_routes` or not, whatever predictions bring; JSON lines have what they bring.
    """
    from longtail.files import whole

    check_predictions_path(path, kept)
    suffix, schema = bare_suffix(path), _schema(kept, with_routes)
    with whole(path) as temporary, ExitStack() as opened:
        if suffix in _PARQUET:
            import pyarrow.parquet as pq

            yield _table_writer(opened.enter_context(pq.ParquetWriter(str(temporary), schema)), kept, schema)
            return
        stream = opened.enter_context(pa.output_stream(str(temporary)))
        if suffix in _DELIMITERS:
            import pyarrow.csv as pv

            from longtail.data.formats.table import without_formulas

            style = pv.WriteOptions(delimiter=_DELIMITERS[suffix], quoting_style="needed")
            written = without_formulas(schema.empty_table()).schema
            writer = opened.enter_context(pv.CSVWriter(stream, written, write_options=style))
            yield _table_writer(writer, kept, schema, without_formulas)
        else:
            yield json_lines(stream, kept)


def json_lines(stream: IO[bytes], kept: Sequence[str]) -> Write:
    """Write one JSON object per text to a stream."""

    def write(texts: pa.Table, predictions: Predictions) -> None:
        fields = texts.select(list(kept)).to_pylist() if kept else [{}] * len(predictions)
        for row, labels, about in zip(fields, predictions, _routes(predictions), strict=True):
            suggested = [{"id": s.id, "name": s.name, "score": round(s.score, SCORE_DIGITS)} for s in labels]
            stream.write((json_text({**row, "labels": suggested, **about}) + "\n").encode())

    return write


def _routes(predictions: Predictions) -> list[dict[str, Any]]:
    """Return the predicted recall and the route of each text; nothing if scores are not calibrated."""
    recall, routes = predictions.predicted_recall, predictions.routes
    if recall is None or routes is None:
        return [{}] * len(predictions)
    return [
        {"predicted_recall": round(one, SCORE_DIGITS), "route": route}
        for one, route in zip(recall, routes, strict=True)
    ]


def _table_writer(
    writer: Any, kept: Sequence[str], schema: pa.Schema, prepared: Callable[[pa.Table], pa.Table] = lambda table: table
) -> Write:
    """Write one row per suggestion, each table `prepared`, to a writer of Arrow tables of a schema."""
    n_texts = 0

    def write(texts: pa.Table, predictions: Predictions) -> None:
        nonlocal n_texts
        flat = predictions.to_arrow()
        columns = {"row": pc.add(flat["row"], n_texts), **{name: texts[name].take(flat["row"]) for name in kept}}
        columns |= {"rank": flat["rank"], "label_id": flat["id"], "label_name": flat["name"]}
        columns |= {"score": pc.round(flat["score"], SCORE_DIGITS)}
        columns |= {name: flat[name] if name in flat.column_names else pa.nulls(len(flat)) for name in _OF_TEXTS}
        writer.write_table(prepared(pa.table({name: columns[name] for name in schema.names}, schema)))
        n_texts += len(texts)

    return write


def _schema(kept: Sequence[str], with_routes: bool) -> pa.Schema:
    of_texts = _OF_TEXTS if with_routes else {}
    return pa.schema({"row": pa.int64(), **dict.fromkeys(kept, pa.string()), **_COLUMNS, **of_texts})
