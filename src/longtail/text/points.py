"""Texts as points, near to each other where texts are alike: what neighbours are searched by.

tfidf   sparse rows of terms (n, n_features)                    texts that share rare terms are near
words   the mean of the vectors of a text's words (n, width)    texts of like words are near

fit(split)         ->  the points of training texts, and what makes them of other texts
of(texts)          ->  points of these
hashes(texts, …)   ->  one number a text, by which copies are known
"""

from __future__ import annotations

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
from longtail.run import Run
from longtail.sparse import sp
from longtail.text.features import TextFeatures
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.text.tokens import TokenOptions, TokenRows, tokenise
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
        """Further columns that are read where texts have them."""
        return self.features.optional_columns

    def reading(self, fields: str) -> dict[str, Any]:
        """Plain options that read these fields (`title,text`) instead."""
        return {"features": self.features.reading(fields)}


class WordPointOptions(Options):
    """Texts as the mean of the vectors of their words."""

    kind: Literal["words"] = "words"
    """Which points these are."""
    tokens: TokenOptions = TokenOptions()
    """Which columns are read, and how far."""
    words: WordOptions = WordOptions()
    """Which words have a vector."""
    vectors: WordVectorOptions = WordVectorOptions(source=TRAIN)
    """Where the vectors of words come from; they stay as they are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that texts must have."""
        return self.tokens.columns

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    def reading(self, fields: str) -> dict[str, Any]:
        """Plain options that read these fields (`title,text`) instead, one after the other."""
        return {"tokens": {"columns": [name.strip() for name in fields.split(",")]}}


AnyPointOptions: TypeAlias = Annotated[TfidfPointOptions | WordPointOptions, Field(discriminator="kind")]


class TextPoints(Protocol):
    """Makes points of texts."""

    @property
    def width(self) -> int:
        """Numbers of a point, most of them 0 where points are sparse."""

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> Points:
        """The points of texts; `features` are used where training texts came as features."""

    def hashes(self, texts: pa.Table, points: Points) -> NDArray[np.uint64]:
        """The hash of what was read of each text, whose points these are."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""


def fit_points(
    split: Split, options: TfidfPointOptions | WordPointOptions, seed: int, run: Run
) -> tuple[TextPoints, Points]:
    """Learn from training texts, as a stage that is kept; and their points."""
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
        """See `fit_points`."""
        made, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        return cls(made, options), rows

    @property
    def width(self) -> int:
        """See `TextPoints.width`."""
        return self.features.n_features

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> Rows:
        """See `TextPoints.of`."""
        return self.features.rows(texts, features, run.engine, run.progress)

    def hashes(self, texts: pa.Table, points: Any) -> NDArray[np.uint64]:
        """See `TextPoints.hashes`."""
        if self.features.tfidf is None:
            return row_hashes(points)
        return content_hashes(texts, (*self.options.columns, *self.options.optional_columns))

    def save(self, writer: FolderWriter, name: str) -> None:
        """See `TextPoints.save`."""
        self.features.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str, options: TfidfPointOptions) -> TfidfPoints:
        """See `load_points`."""
        return cls(TextFeatures.load(folder, name), options)


class WordPoints:
    """Points that are the mean of word vectors, of unit length; a text without any word of the vocabulary is zero."""

    def __init__(self, tokeniser: WordTokeniser, table: NDArray[np.float32], tokens: TokenOptions) -> None:
        """`table` (n_ids, width) is by id of `tokeniser`; the unknown word must have zeros: it says nothing."""
        self.tokeniser, self.table, self.options = tokeniser, table, tokens

    @classmethod
    def fit(
        cls, split: Split, options: WordPointOptions, seed: int, run: Run
    ) -> tuple[WordPoints, NDArray[np.float32]]:
        """See `fit_points`."""
        if not split.has_texts:
            raise DataError("points of kind words must have texts to read, got features without any; use kind tfidf")
        check_source(options.vectors)

        def build() -> tuple[WordPoints, NDArray[np.float32]]:
            tokeniser = WordTokeniser.learn(split.texts, options.tokens, options.words, run.progress)
            tokens = tokenise(split.texts, tokeniser, options.tokens, run.progress)
            table = word_vectors(tokeniser.words, options.vectors, seed, lambda: tokens, run.progress).table
            table[UNKNOWN] = 0
            made = cls(tokeniser, table, options.tokens)
            return made, made.means(tokens, run)

        def write(writer: FolderWriter, made: tuple[WordPoints, NDArray[np.float32]]) -> None:
            made[0].save(writer, "words")
            writer.arrays("points", {"points": made[1]})

        def read(folder: Folder) -> tuple[WordPoints, NDArray[np.float32]]:
            return cls.load(folder, "words", options), folder.arrays("points")["points"]

        return run.stages.keep("points", build, write, read)[0]

    @property
    def width(self) -> int:
        """See `TextPoints.width`."""
        return int(self.table.shape[1])

    def of(self, texts: pa.Table, features: Any | None, run: Run) -> NDArray[np.float32]:
        """See `TextPoints.of`."""
        return self.means(tokenise(texts, self.tokeniser, self.options, run.progress), run)

    def means(self, tokens: TokenRows, run: Run) -> NDArray[np.float32]:
        """The points of texts as word ids (n, width)."""
        made = np.empty((len(tokens), self.table.shape[1]), np.float32)

        def fill(start: int) -> None:
            ptr = tokens.ptr[start : start + _TEXTS_AT_ONCE + 1]
            ids = np.asarray(tokens.ids[ptr[0] : ptr[-1]], np.int32)
            shape = len(ptr) - 1, len(self.table)
            words = sp.csr_matrix((np.ones(len(ids), np.float32), ids, ptr - ptr[0]), shape)
            made[start : start + _TEXTS_AT_ONCE] = unit_length(words @ self.table)  # the sum points where the mean does

        for _ in run.engine.map(fill, range(0, len(tokens), _TEXTS_AT_ONCE)):
            pass
        return made

    def hashes(self, texts: pa.Table, points: Any) -> NDArray[np.uint64]:
        """See `TextPoints.hashes`."""
        return content_hashes(texts, self.options.columns)

    def save(self, writer: FolderWriter, name: str) -> None:
        """See `TextPoints.save`."""
        self.tokeniser.save(writer, name)
        writer.arrays(name, {"vectors": self.table})

    @classmethod
    def load(cls, folder: Folder, name: str, options: WordPointOptions) -> WordPoints:
        """See `load_points`."""
        tokeniser = WordTokeniser.load(folder, name)
        return cls(tokeniser, folder.arrays(name)["vectors"], options.tokens)
