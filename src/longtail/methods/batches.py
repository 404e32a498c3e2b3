"""Tag texts that do not fit into memory: a stream of tables in, a stream of record batches out.

    model.predict_batches("titles.parquet", k=5)  ->  pyarrow.RecordBatchReader

Each batch has the columns of its texts that are kept, then

    label_ids, label_names   list<string>, best first
    scores                   list<float>
    predicted_recall, route  of the text, if scores are calibrated

It is read when it is asked for, and nothing before it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from longtail.data.arrow import int_array
from longtail.data.blocks import ReadTexts, TextReading, cut_into_blocks, find_files, read_block
from longtail.data.inputs import ArrowStream
from longtail.data.texts import BATCH_TEXTS
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.methods.text_columns import TextColumns
from longtail.predictions import route_of
from longtail.run.progress import SILENT, Progress
from longtail.run.run import Precision, Run
from longtail.scores.call import Answer, Call
from longtail.types import NO_LABEL

_OF_LABELS = {
    "label_ids": pa.list_(pa.string()),
    "label_names": pa.list_(pa.string()),
    "scores": pa.list_(pa.float32()),
}
_OF_TEXTS = {"predicted_recall": pa.float64(), "route": pa.string()}


class BatchPrediction(TextColumns):
    """Mixin of a method that tags streams of texts."""

    if TYPE_CHECKING:  # what the method itself has
        vocabulary_: Vocabulary
        facts_: dict[str, Any]

        def _check_fitted(self) -> None: ...
        def answer(
            self, texts: Any, call: Call, run: Run, precision: Precision | None = None, *, with_recall: bool = False
        ) -> Answer:
            """Return the lists of a call."""

    def predict_batches(
        self,
        texts: str | Path | ArrowStream,
        k: int = 5,
        *,
        keep: Sequence[str] | None = None,
        text_column: str | None = None,
        batch_texts: int = BATCH_TEXTS,
        threshold: float | Literal["auto"] | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        tail_weight: float | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        precision: Precision | None = None,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> pa.RecordBatchReader:
        """Return a reader of record batches with up to `k` labels for each text, in the order of the texts.

        `texts` is a file (Parquet, JSON lines, CSV, TSV, lines), a folder of such files, or anything that is read as a
        stream of Arrow batches: a `RecordBatchReader`, a scanner of `pyarrow.dataset`, a table or a data frame. The
        columns `keep` are copied, by default all; `text_column` holds the text. Texts are read and tagged while
        batches are taken, at most `batch_texts` at a time, so memory does not grow with their number. The other
        arguments are those of `predict`.
        """
        self._check_fitted()
        if batch_texts < 1:
            raise ConfigError(f"batch_texts must be at least 1, got {batch_texts}")
        call = Call(k, threshold, min_precision, min_recall, tail_weight, _listed(allow), _listed(deny))
        reading = self.reading(keep, {} if text_column is None else {"text_column": text_column})
        if isinstance(texts, str | Path):
            blocks = cut_into_blocks(find_files(texts), 1 << 62)
            read: Iterator[ReadTexts] = chain.from_iterable(read_block(block, reading, batch_texts) for block in blocks)
        else:
            read = _read_stream(texts, reading, batch_texts)
        run = Run.of(run, threads, progress)
        return self.tag_stream(read, call, run, precision)

    def reading(
        self, keep: Sequence[str] | None, options: dict[str, Any] | None = None, format: str | None = None
    ) -> TextReading:
        """Return how this model reads texts from files, with the columns to `keep` (None is all)."""
        kept = None if keep is None else tuple(keep)
        usual = dict(self.facts_.get("columns", {}))
        return TextReading(self.columns, self.optional_columns, kept, format, usual, options or {})

    def tag_stream(
        self, read: Iterator[ReadTexts], call: Call, run: Run, precision: Precision | None = None
    ) -> pa.RecordBatchReader:
        """Return a reader of the labels of texts, which are read while batches are taken."""
        first = next(read, None)
        if first is None:
            raise DataError("there must be at least one text, got none")
        answer = self.answer(first.texts, call, run, precision, with_recall=True)  # raises here if it must
        new = {**_OF_LABELS, **(_OF_TEXTS if answer.recall is not None else {})}
        taken = [name for name in first.kept.column_names if name in new]
        if taken:
            raise DataError(f"predictions have a column '{taken[0]}' of their own; `keep` other columns")
        schema = pa.schema([*first.kept.schema, *new.items()])

        def batches() -> Iterator[pa.RecordBatch]:
            yield _record_batch(first.kept, answer, self.vocabulary_, schema)
            for texts in read:
                more = self.answer(texts.texts, call, run, precision, with_recall=True)
                yield _record_batch(texts.kept, more, self.vocabulary_, schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def _read_stream(stream: ArrowStream, reading: TextReading, batch_texts: int) -> Iterator[ReadTexts]:
    """Yield the texts of a stream of Arrow batches."""
    if isinstance(stream, pa.RecordBatchReader):
        reader = stream
    elif hasattr(stream, "to_reader"):
        reader = stream.to_reader()
    elif hasattr(stream, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(stream)
    else:
        raise DataError(
            f"texts must be a path or a stream of Arrow batches, got {type(stream).__name__}; lists go to `predict`"
        )
    for batch in reader:
        for start in range(0, len(batch), batch_texts):
            yield ReadTexts.of(pa.table(batch.slice(start, batch_texts)), reading, "texts")


def _record_batch(kept: pa.Table, answer: Answer, vocabulary: Vocabulary, schema: pa.Schema) -> pa.RecordBatch:
    """Return one row per text: the columns that are kept, its labels and their scores."""
    lists = answer.lists
    filled = lists.labels != NO_LABEL  # (n_texts, k)
    ends = np.append(0, np.cumsum(np.count_nonzero(filled, axis=1))).astype(np.int32)
    labels = vocabulary.table.select(["id", "name"]).take(int_array(lists.labels[filled]))
    scores = pa.array(lists.scores[filled], pa.float32())
    values = (labels["id"].combine_chunks(), labels["name"].combine_chunks(), scores)
    lists_of = zip(_OF_LABELS, values, strict=True)
    columns = {name: pa.ListArray.from_arrays(pa.array(ends), column) for name, column in lists_of}
    if answer.recall is not None:
        columns |= {"predicted_recall": pa.array(answer.recall, pa.float64())}
        columns |= {"route": pa.array([route_of(recall) for recall in answer.recall], pa.string())}
    try:
        whole = kept.cast(pa.schema(list(schema)[: kept.num_columns])) if kept.num_columns else kept
    except (pa.ArrowInvalid, ValueError) as error:
        raise DataError(f"all files must have the same columns: {error}") from error
    return pa.RecordBatch.from_arrays(
        [*(column.combine_chunks() for column in whole.columns), *columns.values()], schema=schema
    )


def _listed(labels: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if labels is None else tuple(labels)
