"""Texts as points, near to each other if texts are alike: what neighbours are searched by.

tfidf   sparse rows of terms (n, n_features)                    texts that share rare terms are near
words   the mean of the vectors of a text's words (n, width)    texts of like words are near

fit(split)         ->  TextPoints, and the points of the training texts
of(texts)          ->  the points of other texts
hashes(texts, …)   ->  one number per text, the same for copies
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.errors import DataError
from longtail.kernels.rows import Rows
from longtail.neighbours import Points, content_hashes, row_hashes
from longtail.neighbours.dense import unit_length
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.structure import Structure
from longtail.text.features import TextFeatures
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.text.tokens import TokenOptions, TokenReaderOptions, TokenRows, tokenise
from longtail.text.vectors import TRAIN, WordVectorOptions, check_source, word_vectors
from longtail.text.words import UNKNOWN, WordOptions, WordTokeniser

_TEXTS_AT_ONCE = 512


class TfidfPointOptions(Options):
    """Texts as TF-IDF."""

    kind: Literal["tfidf"] = "tfidf"
    """Which points these are."""
    features: TfidfOptions = TITLE_AND_TEXT
    """All words, and the title (or the first words) once more as pairs of words and as letters."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that texts must have."""
        return self.features.columns

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Further columns that are read if texts have them."""
        return self.features.optional_columns

    def options_for_fields(self, fields: str) -> dict[str, Any]:
        """Return plain options that read these fields (`title,text`) instead."""
        return {"features": self.features.options_for_fields(fields)}


class WordPointOptions(TokenReaderOptions):
    """Texts as the mean of the vectors of their words."""

    kind: Literal["words"] = "words"
    """Which points these are."""
    words: WordOptions = WordOptions()
    """Which words have a vector."""
    vectors: WordVectorOptions = WordVectorOptions(source=TRAIN)
    """Where the vectors of words come from; they stay as they are."""


AnyPointOptions: TypeAlias = Annotated[TfidfPointOptions | WordPointOptions, Field(discriminator="kind")]


class TextPoints(Protocol):
    """Turns texts into points."""

    @property
    def width(self) -> int:
        """Numbers of a point, most of them 0 if points are sparse."""

    @property
    def reads_texts(self) -> bool:
        """Whether points are made of texts; if not, of features that come with them."""

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> Points:
        """Return the points of texts; `features` are used if training texts came as features."""

    def hashes(self, texts: pa.Table, points: Points) -> NDArray[np.uint64]:
        """Return a hash of what was read of each text, whose points these are."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""


def fit_points(
    split: Split, options: TfidfPointOptions | WordPointOptions, seed: int, run: Run
) -> tuple[TextPoints, Points]:
    """Learn from training texts, as a stage that is kept; return what was learned and their points."""
    if isinstance(options, WordPointOptions):
        return WordPoints.fit(split, options, seed, run)
    return TfidfPoints.fit(split, options, run)


def load_points(folder: Folder, name: str, options: TfidfPointOptions | WordPointOptions) -> TextPoints:
    """Open what `save` wrote."""
    if isinstance(options, WordPointOptions):
        return WordPoints.load(folder, name, options)
    return TfidfPoints.load(folder, name, options)


class TfidfPoints:
    """Points that are features of TF-IDF, or that came as features."""

    def __init__(self, features: TextFeatures, options: TfidfPointOptions) -> None:
        self.features, self.options = features, options

    @classmethod
    def fit(cls, split: Split, options: TfidfPointOptions, run: Run) -> tuple[TfidfPoints, Rows]:
        """Learn from training texts; return what was learned and their points."""
        features, rows = TextFeatures.fit(split, options.features, run)
        return cls(features, options), rows

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return self.features.n_features

    @property
    def reads_texts(self) -> bool:
        """Whether points are made of texts."""
        return self.features.tfidf is not None

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> Rows:
        """Return the features of texts, or those that came with them."""
        return self.features.rows(texts, features, run)

    def hashes(self, texts: pa.Table, points: Any) -> NDArray[np.uint64]:
        """Return a hash of what was read of each text."""
        if self.features.tfidf is None:
            return row_hashes(points)
        return content_hashes(texts, (*self.options.columns, *self.options.optional_columns))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.features.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str, options: TfidfPointOptions) -> TfidfPoints:
        """Open what `save` wrote."""
        return cls(TextFeatures.load(folder, name), options)


def mean_vectors(words: SharedArrays, vectors: SharedArrays, start: int) -> NDArray[np.float32]:
    """Return the means of the word vectors of some texts, from number `start` on, at unit length."""
    tokens, table = words.open(), vectors.open()["vectors"]
    ptr = tokens["ptr"][start : start + _TEXTS_AT_ONCE + 1]
    ids = np.asarray(tokens["ids"][ptr[0] : ptr[-1]], np.int32)
    counts = sp.csr_matrix((np.ones(len(ids), np.float32), ids, ptr - ptr[0]), (len(ptr) - 1, len(table)))
    return unit_length(counts @ table)  # the sum has the direction of the mean


class WordPoints:
    """Points that are the mean of word vectors, of unit length; a text without any word of the vocabulary is zero."""

    def __init__(self, tokeniser: WordTokeniser, table: NDArray[np.float32], tokens: TokenOptions) -> None:
        """`table` (n_ids, width) is by id of `tokeniser`; the unknown word must have zeros: it says nothing."""
        self.tokeniser, self.table, self.options = tokeniser, table, tokens

    @classmethod
    def fit(
        cls, split: Split, options: WordPointOptions, seed: int, run: Run
    ) -> tuple[WordPoints, NDArray[np.float32]]:
        """Learn words and their vectors from training texts; return them and the points."""
        if not split.has_texts:
            raise DataError("points of kind words must have texts to read, got features without any; use kind tfidf")
        check_source(options.vectors)

        def build() -> tuple[WordPoints, NDArray[np.float32]]:
            tokeniser = WordTokeniser.learn(split.texts, options.tokens, options.words, run=run)
            tokens = tokenise(split.texts, tokeniser, options.tokens, run=run, stage=None)
            table = word_vectors(tokeniser.words, options.vectors, seed=seed, tokens=lambda: tokens, run=run).table
            table[UNKNOWN] = 0
            points = cls(tokeniser, table, options.tokens)
            return points, points.means(tokens, run)

        def write(writer: FolderWriter, fitted: tuple[WordPoints, NDArray[np.float32]]) -> None:
            fitted[0].save(writer, "words")
            writer.arrays("points", {"points": fitted[1]})

        def read(folder: Folder) -> tuple[WordPoints, NDArray[np.float32]]:
            return cls.load(folder, "words", options), folder.arrays("points")["points"]

        return run.stages.keep("points", build, write, read)[0]

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return int(self.table.shape[1])

    @property
    def reads_texts(self) -> bool:
        """Points are made of texts."""
        return True

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> NDArray[np.float32]:
        """Return the mean word vectors of texts."""
        return self.means(tokenise(texts, self.tokeniser, self.options, run=run, stage=None), run)

    def means(self, tokens: TokenRows, run: Run) -> NDArray[np.float32]:
        """Return the points of texts as word ids (n, width)."""
        points = np.empty((len(tokens), self.width), np.float32)
        starts = range(0, len(tokens), _TEXTS_AT_ONCE)
        words = run.engine.share("words", {"ids": tokens.ids, "ptr": tokens.ptr})
        work = partial(mean_vectors, words, run.engine.share("vectors", {"vectors": self.table}))
        for start, means in zip(starts, run.engine.map(work, starts), strict=True):
            points[start : start + _TEXTS_AT_ONCE] = means
        return points

    def hashes(self, texts: pa.Table, points: Any) -> NDArray[np.uint64]:
        """Return a hash of what was read of each text."""
        return content_hashes(texts, self.options.columns)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.tokeniser.save(writer, name)
        writer.arrays(name, {"vectors": self.table})

    @classmethod
    def load(cls, folder: Folder, name: str, options: WordPointOptions) -> WordPoints:
        """Open what `save` wrote."""
        tokeniser = WordTokeniser.load(folder, name)
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        return cls(tokeniser, stored.finite("vectors", np.float32, shape=(tokeniser.n_ids, None)), options.tokens)
