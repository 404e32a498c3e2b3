"""The features of a data set: computed from texts, or part of the data.

    fit(split)  ->  (TextFeatures, Rows (n_texts, n_features))
    rows(texts) ->  Rows for new texts

Data that come as sparse features (svmlight, XMC) are used as they are; new texts must then come as features too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from longtail.data.dataset import TEXT, Split
from longtail.errors import DataError, ModelFormatError
from longtail.kernels.rows import Rows
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.text.fields import TfidfOptions
from longtail.text.tfidf import Tfidf


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """A fitted vectoriser, or just the number of features."""

    tfidf: Tfidf | None
    n_features: int

    @classmethod
    def fit(cls, split: Split, options: TfidfOptions, run: Run | None = None) -> tuple[TextFeatures, Rows]:
        """Learn from the texts of a split, as a stage that is kept; data without texts bring their features."""
        run = run or Run()
        if not split.has_texts:
            rows = Rows.of(split.features)
            return cls(None, rows.n_columns), rows

        def build() -> tuple[TextFeatures, Rows]:
            tfidf = Tfidf(options)
            rows = Rows.of(tfidf.fit_transform(split.texts, run))
            return cls(tfidf, rows.n_columns), rows

        def write(writer: FolderWriter, fitted: tuple[TextFeatures, Rows]) -> None:
            fitted[0].save(writer, "features")
            writer.arrays("rows", fitted[1].arrays())

        def read(folder: Folder) -> tuple[TextFeatures, Rows]:
            features = cls.load(folder, "features")
            return features, Rows.load(folder, "rows", features.n_features)

        return run.stages.keep("features", build, write, read)[0]

    def rows(self, texts: pa.Table, features: Any | None, run: Run | None = None) -> Rows:
        """Return the rows of new texts; `features` are used if the model was trained on features."""
        if self.tfidf is None:
            if features is None:
                raise DataError("this model was trained on sparse features, not on texts; give texts as features too")
            if features.shape[1] > self.n_features:
                raise DataError(f"features must have at most {self.n_features:,} columns, got {features.shape[1]:,}")
            return Rows.of(
                sp.csr_matrix((features.data, features.indices, features.indptr), (features.shape[0], self.n_features))
            )
        if len(texts) == 1:
            indices, values = self.tfidf.transform_one({name: texts[name][0].as_py() for name in texts.column_names})
            return Rows(np.array([0, len(indices)]), indices, values, self.n_features)
        indptr, indices, values = self.tfidf.transform_rows(texts, run)
        return Rows(indptr, indices, values, self.n_features)

    def of_names(self, names: Sequence[str]) -> Rows | None:
        """Return the features of label names, read like texts; None if features do not come from texts."""
        if self.tfidf is None:
            return None
        columns = {block.column for block in self.tfidf.options.blocks} | {TEXT}
        return Rows.of(self.tfidf.transform(pa.table({column: pa.array(names, pa.string()) for column in columns})))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.manifest["n_features"] = self.n_features
        if self.tfidf is not None:
            self.tfidf.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str) -> TextFeatures:
        """Open what `save` wrote."""
        n_features = int(folder.manifest["n_features"])
        tfidf = Tfidf.load(folder, name) if name in folder.manifest else None
        if n_features < 0 or (tfidf is not None and tfidf.n_features_ != n_features):
            raise ModelFormatError(
                f"{folder.path}, {name}: n_features is wrong, got {n_features:,}; train the model anew"
            )
        return cls(tfidf, n_features)
