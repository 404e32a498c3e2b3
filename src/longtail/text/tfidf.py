"""TF-IDF features of texts, fitted on the training texts only.

    table (n_texts rows, string columns)  ->  csr_matrix (n_texts, n_features) float32, rows of length 1

A block of features reads one column. A term gets tf × idf with idf = 1 + ln((1 + n_texts) / (1 + df)). Blocks
lie side by side; in each row a block has the length of its weight, then the row is scaled to length 1.
With one block this is what scikit-learn's TfidfVectorizer gives, but for the order of the features:
here by falling document frequency, ties by term. A text without known terms has an empty row.

Texts are read once, in spans of a megabyte, each by a job of the engine; only counted terms are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import TEXT
from longtail.errors import DataError, ModelFormatError, NotFittedError
from longtail.kernels.native.tokens import weigh
from longtail.mapped_arrays import Arrays
from longtail.persist import Folder, FolderWriter
from longtail.run.engine import SharedArrays
from longtail.run.local import Scratch
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.structure import Structure
from longtail.text.columns import SPAN_BYTES, Bytes, SharedColumns, bytes_of, bytes_of_text, columns_of, spans_of
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.text.gathered import GatheredRows, RowArrays, as_matrix
from longtail.text.terms import Analysis, Counted, TermCounter, TermTable, choose_terms, stacked

_SAME_IDS = np.empty(0, np.int32)
_PLACES = Scratch(np.int32, 0)
"""Where kernels note terms of the text at hand; whatever lies there does not matter."""


def _ignored(amount: int) -> None:
    """Progress of a step that is not shown: it takes a tenth of the step before it."""


class Tfidf:
    """Turns texts into sparse features."""

    def __init__(self, options: TfidfOptions | None = None) -> None:
        self.options = options or TfidfOptions()

    def fit(self, texts: pa.Table, run: Run | None = None, *, span_bytes: int = SPAN_BYTES) -> Tfidf:
        """Learn the terms of `texts` and how many of them have each; `span_bytes` are read by one job."""
        self._learn(texts, run or Run(), None, span_bytes)
        return self

    def fit_transform(self, texts: pa.Table, run: Run | None = None, *, span_bytes: int = SPAN_BYTES) -> sp.csr_matrix:
        """Learn from `texts` and return their features, reading them once; `span_bytes` are read by one job."""
        run = run or Run()
        rows = GatheredRows()
        spans, new_ids, starts = self._learn(texts, run, rows, span_bytes)
        spec = WeighSpec(
            # Views, because the memory of the counts becomes that of the features as these arrive, span by span.
            counted=run.engine.share("counts", {"ids": rows.indices[:], "counts": rows.counts[:]}),
            weights=run.engine.share("weights", {"idf": self.idf_, "new_ids": new_ids, "starts": starts}),
            options=self.options,
        )
        features = run.engine.map(partial(weigh_span, spec), spans)
        return as_matrix(self._gathered(features, len(spans), rows), self.n_features_)

    def transform(self, texts: pa.Table, run: Run | None = None, *, span_bytes: int = SPAN_BYTES) -> sp.csr_matrix:
        """Return the features of `texts`; terms that the training texts did not have are dropped."""
        return as_matrix(self.transform_rows(texts, run, span_bytes=span_bytes), self.n_features_)

    def transform_rows(self, texts: pa.Table, run: Run | None = None, *, span_bytes: int = SPAN_BYTES) -> RowArrays:
        """Return the same as indptr, indices and values: needs no scipy."""
        self._check_fitted()
        run = run or Run()
        blocks = self._blocks_of(texts.column_names)
        columns = columns_of(texts, blocks)
        spec = TransformSpec(
            columns=SharedColumns.of(columns, run.engine),
            blocks=tuple(blocks),
            terms=run.engine.share("terms", self._arrays()),
            options=self.options,
        )
        with run.progress.step("features", len(texts), "texts") as advance:
            spans = spans_of(columns, span_bytes)
            features = run.engine.map(partial(transform_span, spec), spans)
            return self._gathered(features, len(spans), GatheredRows(), advance)

    def transform_one(self, text: str | Mapping[str, str]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the features of one text, ascending, and their values; a plain string is the column `text`."""
        self._check_fitted()
        fields = {TEXT: text} if isinstance(text, str) else text
        blocks = self._blocks_of(fields)
        texts = [bytes_of_text(fields[block.column], block.lowercase) for block in blocks]
        _, indices, values = _features(texts, blocks, self.tables_, self._weights)
        return indices, values

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        self._check_fitted()
        return len(self.idf_)

    def feature_names(self, features: Iterable[int] | None = None) -> list[str]:
        """Return the terms of some features, or of all; with several blocks as `column:term`."""
        self._check_fitted()
        chosen = np.arange(self.n_features_) if features is None else np.fromiter(features, np.int64)
        terms = self.terms_.take(pa.array(chosen)).to_pylist()
        if len(self.tables_) == 1:
            return terms  # type: ignore[no-any-return]
        block_of = np.searchsorted(self._weights.starts, chosen, "right") - 1
        return [f"{self.options.blocks[block].column}:{term}" for block, term in zip(block_of, terms, strict=True)]

    def bounds_of_blocks(self) -> list[tuple[int, int]]:
        """Return the first feature of each block and the one behind its last."""
        self._check_fitted()
        ends = [*self._weights.starts[1:].tolist(), self.n_features_]
        return list(zip(self._weights.starts.tolist(), ends, strict=True))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write everything into a folder under `name`."""
        self._check_fitted()
        writer.arrays(name, self._arrays())
        writer.table(name, pa.table({"term": self.terms_}))
        writer.manifest[name] = self.options.plain()

    @classmethod
    def load(cls, folder: Folder, name: str) -> Tfidf:
        """Open what `save` wrote; nothing is read before it is needed."""
        if name not in folder.manifest:
            raise ModelFormatError(f"{folder.path} has no features called '{name}'; save the model again")
        tfidf = cls(TfidfOptions.of(folder.manifest[name], f"{folder.path}, {name}"))
        stored, terms = Structure(folder.arrays(name), f"{folder.path}, {name}"), folder.table(name)
        for number in range(len(tfidf.options.blocks)):
            _check_table(stored, f"{number}.slots", f"{number}.hashes")
            _check_table(stored, f"{number}.stop_slots", f"{number}.stop_hashes")
        tables = _tables_of(tfidf.options, stored.arrays)
        idf = stored.finite("idf", np.float32, shape=(sum(table.n_terms for table in tables),))
        stored.require("idf", terms.schema.names == ["term"] and len(terms) == len(idf), "have one number per term")
        tfidf._use(tables, terms["term"], idf)
        return tfidf

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the terms of all blocks, and how rare they are."""
        arrays: dict[str, NDArray[Any]] = {"idf": self.idf_}
        for number, table in enumerate(self.tables_):
            arrays[f"{number}.slots"], arrays[f"{number}.hashes"] = table.table
            arrays[f"{number}.stop_slots"], arrays[f"{number}.stop_hashes"] = table.analysis.stop_words
        return arrays

    def _learn(
        self, texts: pa.Table, run: Run, rows: GatheredRows | None, span_bytes: int
    ) -> tuple[list[CountedSpan], NDArray[np.int32], NDArray[np.int64]]:
        """Fit; if `rows` are given, they get the counted terms of all texts.

        Returns the spans in `rows`, the feature of each term there block after block, and where each block begins.
        """
        blocks = self._blocks_of(texts.column_names)
        columns = columns_of(texts, blocks)
        if not len(texts):
            raise DataError("features must be learned from at least one text, got none")
        counters = [TermCounter(Analysis.of(block)) for block in blocks]
        spec = CountSpec(SharedColumns.of(columns, run.engine), tuple(blocks))
        kept: list[CountedSpan] = []
        start = 0
        spans = spans_of(columns, span_bytes)
        with run.progress.step("features", len(texts), "texts") as advance:
            for span, of_span in zip(spans, run.engine.map(partial(count_span, spec), spans), strict=True):
                advance(len(span))
                ids = [counter.absorb(terms) for counter, terms in zip(counters, of_span.terms, strict=True)]
                if rows is not None:
                    indptr, local_ids, counts = of_span.counted
                    stop = start + len(local_ids)
                    rows.reserve(stop, (len(kept) + 1) / len(spans))
                    for number, new_ids in enumerate(ids):  # blocks lie one below the other
                        first, last = indptr[number * len(span)], indptr[(number + 1) * len(span)]
                        rows.indices[start + first : start + last] = new_ids[local_ids[first:last]]
                    rows.counts[start:stop] = counts
                    kept.append(CountedSpan(indptr, start, stop))
                    start = stop
        return kept, *self._choose(counters, len(texts))

    def _blocks_of(self, columns: Collection[str]) -> list[FieldOptions]:
        return [block.among(columns) for block in self.options.blocks]

    def _choose(self, counters: Sequence[TermCounter], n_texts: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Use the terms of all blocks; return the feature of each term, block after block, and where each begins."""
        tables, terms, idf, new_ids = [], [], [], []
        n_features = 0
        for counter, block in zip(counters, self.options.blocks, strict=True):
            table, names, df, features = choose_terms(counter, block, n_texts)
            new_ids.append(np.where(features < 0, -1, features + n_features).astype(np.int32))
            tables.append(table)
            terms.append(names)
            idf.append(np.log((1 + n_texts) / (1 + df)) + 1)
            n_features += table.n_terms
        self._use(tables, pa.chunked_array(terms), np.concatenate(idf).astype(np.float32))
        starts = np.cumsum([0, *(len(ids) for ids in new_ids[:-1])], dtype=np.int64)
        return np.concatenate(new_ids), starts

    def _use(self, tables: Sequence[TermTable], terms: pa.ChunkedArray, idf: NDArray[np.float32]) -> None:
        self.tables_ = tables
        self.terms_ = terms
        self.idf_ = idf  # (n_features,)
        self._weights = TermWeights.of(tables, idf, self.options)

    def _gathered(
        self, spans: Iterable[RowArrays], n_spans: int, rows: GatheredRows, advance: Callable[[int], None] = _ignored
    ) -> RowArrays:
        """Write the features of all spans into `rows`, one after the other."""
        lengths: list[NDArray[np.int64]] = []
        start = 0
        for indptr, indices, values in spans:
            stop = start + len(indices)
            lengths.append(np.diff(indptr))
            rows.reserve(stop, len(lengths) / n_spans)
            rows.indices[start:stop], rows.values[start:stop] = indices, values
            advance(len(indptr) - 1)
            start = stop
        return rows.arrays(lengths)

    def _check_fitted(self) -> None:
        if not hasattr(self, "tables_"):
            raise NotFittedError("features must be fitted before texts are turned into them; call fit(texts) first")


@dataclass(frozen=True)
class CountSpec:
    """Which texts are counted, and how."""

    columns: SharedColumns
    blocks: tuple[FieldOptions, ...]
    """One per column."""


class SpanTerms(NamedTuple):
    """The terms of some texts, numbered as they appear in them."""

    counted: Counted
    """Those of all texts in the first block, then in the next one, and so on."""
    terms: list[dict[str, NDArray[Any]]]
    """What `TermCounter.found` gives for each block."""


def count_span(spec: CountSpec, rows: range) -> SpanTerms:
    """Count the terms of some neighbouring texts."""
    counters = [TermCounter(Analysis.of(block)) for block in spec.blocks]
    counted = [
        counter.count(bytes_of(column, rows, block.lowercase), block.max_words)
        for counter, block, column in zip(counters, spec.blocks, spec.columns.open(), strict=True)
    ]
    return SpanTerms(stacked(counted), [counter.found() for counter in counters])


class CountedSpan(NamedTuple):
    """Where the counted terms of some texts lie among those of all."""

    indptr: NDArray[np.int64]
    start: int
    stop: int


@dataclass(frozen=True)
class WeighSpec:
    """Counted terms, and the weights of terms."""

    counted: SharedArrays
    """`ids` and `counts` of terms."""
    weights: SharedArrays
    """`idf`, `new_ids` and `starts`: the feature of each id, block after block, and where each block begins."""
    options: TfidfOptions


def weigh_span(spec: WeighSpec, span: CountedSpan) -> RowArrays:
    """Return the features of a span of counted texts."""
    counted, weights = spec.counted.open(), spec.weights.open()
    ids, counts = (counted[name][span.start : span.stop] for name in ("ids", "counts"))
    return TermWeights(weights["starts"], weights["idf"], spec.options).weigh(
        (span.indptr, ids, counts), weights["new_ids"]
    )


@dataclass(frozen=True)
class TransformSpec:
    """Texts, and the terms that are features."""

    columns: SharedColumns
    blocks: tuple[FieldOptions, ...]
    """One per column."""
    terms: SharedArrays
    """What a fitted `Tfidf` stores."""
    options: TfidfOptions


def transform_span(spec: TransformSpec, rows: range) -> RowArrays:
    """Return the features of some neighbouring texts."""
    arrays = spec.terms.open()
    columns = zip(spec.columns.open(), spec.blocks, strict=True)
    texts = [bytes_of(column, rows, block.lowercase) for column, block in columns]
    tables = _tables_of(spec.options, arrays)
    return _features(texts, spec.blocks, tables, TermWeights.of(tables, arrays["idf"], spec.options))


class TermWeights:
    """Turns counted terms into weights, for blocks whose first features or ids are `starts`."""

    def __init__(self, starts: NDArray[np.int64], idf: NDArray[np.float32], options: TfidfOptions) -> None:
        blocks = options.blocks
        self.starts, self.idf = starts, idf
        # A single block has length 1 whatever its weight.
        self.lengths = np.array([block.weight for block in blocks] if len(blocks) > 1 else [1.0], np.float64)
        self.sublinear = np.array([block.sublinear for block in blocks], np.bool_)

    @classmethod
    def of(cls, tables: Sequence[TermTable], idf: NDArray[np.float32], options: TfidfOptions) -> TermWeights:
        """Return the weights of terms that are counted by their features."""
        return cls(np.cumsum([0, *(table.n_terms for table in tables[:-1])], dtype=np.int64), idf, options)

    def weigh(self, counted: Counted, new_ids: NDArray[np.int32] = _SAME_IDS) -> RowArrays:
        """Return the features of counted texts; `new_ids` are those of the counted ids, block after block."""
        indptr, ids, counts = counted
        return weigh(  # type: ignore[no-any-return]
            indptr, ids, counts, len(self.starts), new_ids, self.starts, self.idf, self.lengths, self.sublinear
        )


def _features(
    texts: Sequence[Bytes], blocks: Sequence[FieldOptions], tables: Sequence[TermTable], weights: TermWeights
) -> RowArrays:
    """Return the features of texts, which come as one column of bytes per block."""
    counted = [
        table.count(column, _PLACES.take(table.n_terms), block.max_words)
        for table, block, column in zip(tables, blocks, texts, strict=True)
    ]
    return weights.weigh(stacked(counted))


def _tables_of(options: TfidfOptions, arrays: Arrays) -> list[TermTable]:
    """Return the tables of all blocks, as `Tfidf` stores them."""
    tables = []
    for number, block in enumerate(options.blocks):
        analysis = Analysis(block, (arrays[f"{number}.stop_slots"], arrays[f"{number}.stop_hashes"]))
        tables.append(TermTable(analysis, (arrays[f"{number}.slots"], arrays[f"{number}.hashes"])))
    return tables


def _check_table(stored: Structure, slots: str, hashes: str) -> None:
    """Raise if looking a term up could leave a hash table, or never end."""
    numbers = stored.numbers(slots, np.int32, below=len(stored.array(hashes, np.uint64)), least=-1)
    n = len(numbers)
    stored.require(slots, n > 0 and not n & (n - 1) and int(numbers.min()) < 0, "be 2^n slots, some of them free")
