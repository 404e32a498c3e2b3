"""TF-IDF features of texts, fitted on the training texts only.

    table (n_texts rows, string columns)  ->  csr_matrix (n_texts, n_features) float32, rows of length 1

A block of features reads one column. A term gets tf × idf with idf = 1 + ln((1 + n_texts) / (1 + df)). Blocks
lie side by side; in each row a block has the length of its weight, then the row is scaled to length 1.
With one block this is what scikit-learn's TfidfVectorizer gives, but for the order of the features:
here by falling document frequency, ties by term. A text without known terms has an empty row.

Texts are read once, in spans of a megabyte, by all threads; only counted terms are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import TEXT
from longtail.engines.local import LocalEngine, PerThread
from longtail.errors import DataError, ModelFormatError, NotFittedError
from longtail.kernels.native.tokens import weigh
from longtail.persist import Folder, FolderWriter
from longtail.progress import SILENT, Progress
from longtail.sparse import sp
from longtail.text.columns import bytes_of, bytes_of_text, columns_of, spans_of
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.text.gathered import Arrays, GatheredRows, as_matrix
from longtail.text.terms import Analysis, Counted, TermCounter, TermTable, merge, stacked

_SAME_IDS = np.empty(0, np.int32)


def _ignored(amount: int) -> None:
    """Progress of a step that nobody needs to see: it takes a tenth of the step before it."""


class Tfidf:
    """Turns texts into sparse features."""

    def __init__(self, options: TfidfOptions | None = None) -> None:
        self.options = options or TfidfOptions()

    def fit(self, texts: pa.Table, engine: LocalEngine | None = None, progress: Progress = SILENT) -> Tfidf:
        """Learn the terms of `texts` and how many of them have each."""
        self._learn(texts, engine or LocalEngine(), progress, None)
        return self

    def fit_transform(
        self, texts: pa.Table, engine: LocalEngine | None = None, progress: Progress = SILENT
    ) -> sp.csr_matrix:
        """Learn from `texts` and turn them into features, reading them once."""
        engine = engine or LocalEngine()
        rows = GatheredRows()
        spans = self._learn(texts, engine, progress, rows)

        def features(span: _Span) -> Arrays:
            counted = span.indptr, rows.indices[span.start : span.stop], rows.counts[span.start : span.stop]
            return self._weighed(counted, *span.worker.new_ids)

        return as_matrix(self._gathered(engine.map(features, spans), len(spans), rows), self.n_features_)

    def transform(
        self, texts: pa.Table, engine: LocalEngine | None = None, progress: Progress = SILENT
    ) -> sp.csr_matrix:
        """Features of `texts`; terms that the training texts did not have are dropped."""
        return as_matrix(self.transform_rows(texts, engine, progress), self.n_features_)

    def transform_rows(self, texts: pa.Table, engine: LocalEngine | None = None, progress: Progress = SILENT) -> Arrays:
        """The same as indptr, indices and values: needs no scipy."""
        self._check_fitted()
        blocks = self._blocks_of(texts.column_names)
        columns = columns_of(texts, blocks)

        def features(rows: range) -> Arrays:
            parts = [
                table.count(bytes_of(column, rows, block.lowercase), place, block.max_words)
                for table, block, column, place in zip(self.tables_, blocks, columns, self._places.value, strict=True)
            ]
            return self._weighed(stacked(parts), _SAME_IDS, self._starts)

        with progress.step("features", len(texts), "texts") as advance:
            spans = spans_of(columns)
            parts = (engine or LocalEngine()).map(features, spans)
            return self._gathered(parts, len(spans), GatheredRows(), advance)

    def transform_one(self, text: str | Mapping[str, str]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Features of one text, ascending, and their values; a plain string is the column `text`."""
        self._check_fitted()
        fields = {TEXT: text} if isinstance(text, str) else text
        parts = [
            table.count(bytes_of_text(fields[block.column], block.lowercase), place, block.max_words)
            for table, block, place in zip(self.tables_, self._blocks_of(fields), self._places.value, strict=True)
        ]
        _, indices, values = self._weighed(stacked(parts), _SAME_IDS, self._starts)
        return indices, values

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        self._check_fitted()
        return len(self.idf_)

    def feature_names(self, features: Iterable[int] | None = None) -> list[str]:
        """The terms of some features, or of all; with several blocks as `column:term`."""
        self._check_fitted()
        chosen = np.arange(self.n_features_) if features is None else np.fromiter(features, np.int64)
        terms = self.terms_.take(pa.array(chosen)).to_pylist()
        if len(self.tables_) == 1:
            return terms  # type: ignore[no-any-return]
        block_of = np.searchsorted(self._starts, chosen, "right") - 1
        return [f"{self.options.blocks[block].column}:{term}" for block, term in zip(block_of, terms, strict=True)]

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write everything into a folder under `name`."""
        self._check_fitted()
        arrays: dict[str, NDArray[Any]] = {"idf": self.idf_}
        for number, table in enumerate(self.tables_):
            arrays[f"{number}.slots"], arrays[f"{number}.hashes"] = table.table
            arrays[f"{number}.stop_slots"], arrays[f"{number}.stop_hashes"] = table.analysis.stop_words
        writer.arrays(name, arrays)
        writer.table(name, pa.table({"term": self.terms_}))
        writer.manifest[name] = self.options.plain()

    @classmethod
    def load(cls, folder: Folder, name: str) -> Tfidf:
        """Open what `save` wrote; nothing is read before it is needed."""
        if name not in folder.manifest:
            raise ModelFormatError(f"{folder.path} has no features called '{name}'; save the model again")
        made = cls(TfidfOptions.of(folder.manifest[name], f"{folder.path}, {name}"))
        arrays = folder.arrays(name)
        tables = []
        try:
            for number, block in enumerate(made.options.blocks):
                analysis = Analysis(block, (arrays[f"{number}.stop_slots"], arrays[f"{number}.stop_hashes"]))
                tables.append(TermTable(analysis, (arrays[f"{number}.slots"], arrays[f"{number}.hashes"])))
            made._use(tables, folder.table(name)["term"], arrays["idf"])
        except KeyError as error:
            raise ModelFormatError(f"{folder.path}, {name}: {error} is missing; save the model again") from error
        return made

    def _learn(
        self, texts: pa.Table, engine: LocalEngine, progress: Progress, rows: GatheredRows | None
    ) -> list[_Span]:
        """Fit; if `rows` are given, they get the counted terms of all texts, and the spans in them are returned."""
        blocks = self._blocks_of(texts.column_names)
        columns = columns_of(texts, blocks)
        if not len(texts):
            raise DataError("features must be learned from at least one text, got none")
        workers: list[_Worker] = []
        analyses = [Analysis.of(block) for block in blocks]
        own = PerThread(lambda: _Worker(analyses, workers))

        def count(span: range) -> tuple[_Worker, Counted]:
            worker = own.value
            parts = [
                counter.count(bytes_of(column, span, block.lowercase), block.max_words)
                for counter, block, column in zip(worker.counters, blocks, columns, strict=True)
            ]
            return worker, stacked(parts)

        kept: list[_Span] = []
        start = 0
        spans = spans_of(columns)
        with progress.step("features", len(texts), "texts") as advance:
            for span, (worker, (indptr, ids, counts)) in zip(spans, engine.map(count, spans), strict=True):
                advance(len(span))
                if rows is not None:
                    stop = start + len(ids)
                    rows.reserve(stop, (len(kept) + 1) / len(spans))
                    rows.indices[start:stop], rows.counts[start:stop] = ids, counts
                    kept.append(_Span(worker, indptr, start, stop))
                    start = stop
        self._merge(workers, len(texts))
        return kept

    def _blocks_of(self, columns: Collection[str]) -> list[FieldOptions]:
        return [block.among(columns) for block in self.options.blocks]

    def _merge(self, workers: Sequence[_Worker], n_texts: int) -> None:
        """Join what the workers counted, and tell each the features of its terms."""
        tables, terms, idf = [], [], []
        start = 0
        for block in self.options.blocks:
            table, names, df, features = merge([worker.counters.pop(0) for worker in workers], block, n_texts)
            for worker, own in zip(workers, features, strict=True):
                worker.features.append(np.where(own < 0, -1, own + start).astype(np.int32))
            tables.append(table)
            terms.append(names)
            idf.append(np.log((1 + n_texts) / (1 + df)) + 1)
            start += table.n_terms
        self._use(tables, pa.chunked_array(terms), np.concatenate(idf).astype(np.float32))

    def _use(self, tables: Sequence[TermTable], terms: pa.ChunkedArray, idf: NDArray[np.float32]) -> None:
        self.tables_ = tables
        self.terms_ = terms
        self.idf_ = idf  # (n_features,)
        self._places = PerThread(lambda: [np.zeros(table.n_terms, np.int32) for table in tables])
        self._starts = np.cumsum([0, *(table.n_terms for table in tables[:-1])], dtype=np.int64)
        # A single block has length 1 whatever its weight.
        weights = [block.weight for block in self.options.blocks] if len(tables) > 1 else [1.0]
        self._weights = np.array(weights, np.float64)
        self._sublinear = np.array([block.sublinear for block in self.options.blocks], np.bool_)

    def _weighed(self, counted: Counted, new_ids: NDArray[np.int32], starts: NDArray[np.int64]) -> Arrays:
        blocks = len(self.tables_), new_ids, starts, self.idf_, self._weights, self._sublinear
        return weigh(*counted, *blocks)  # type: ignore[no-any-return]

    def _gathered(
        self, parts: Iterable[Arrays], n_parts: int, rows: GatheredRows, advance: Callable[[int], None] = _ignored
    ) -> Arrays:
        """Write the parts into `rows` one after the other."""
        lengths: list[NDArray[np.int64]] = []
        start = 0
        for indptr, indices, values in parts:
            stop = start + len(indices)
            lengths.append(np.diff(indptr))
            rows.reserve(stop, len(lengths) / n_parts)
            rows.indices[start:stop], rows.values[start:stop] = indices, values
            advance(len(indptr) - 1)
            start = stop
        return rows.arrays(lengths)

    def _check_fitted(self) -> None:
        if not hasattr(self, "tables_"):
            raise NotFittedError("features must be fitted before texts are turned into them; call fit(texts) first")


class _Worker:
    """What one thread has counted: a counter a block, and later the features of their terms."""

    def __init__(self, analyses: Sequence[Analysis], workers: list[_Worker]) -> None:
        self.counters = [TermCounter(analysis) for analysis in analyses]
        self.features: list[NDArray[np.int32]] = []
        workers.append(self)

    @cached_property
    def new_ids(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Features of all terms, block after block, and where each block begins."""
        starts = np.cumsum([0, *(len(features) for features in self.features[:-1])], dtype=np.int64)
        return np.concatenate(self.features), starts


@dataclass(frozen=True, eq=False)
class _Span:
    """Where the counted terms of some texts lie in the gathered rows, and who numbered them."""

    worker: _Worker
    indptr: NDArray[np.int64]
    start: int
    stop: int
