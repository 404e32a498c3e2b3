"""The texts of one call, with what has been made of them so far.

    texts = TextReadings(table)
    texts.tokens(tokeniser, options, run)  ->  TokenRows, made once per tokeniser and token options
    texts.rows(features, run)              ->  Rows (n_texts, n_features), made once per vectoriser

One object is created per training or prediction and handed to all members of a model: members that read texts the
same way share the result. It lives as long as the call, and may be used from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import Split, Texts, as_table
from longtail.kernels.rows import Rows
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TfidfOptions
from longtail.text.tokens import Tokeniser, TokenOptions, TokenRows, tokenise

T = TypeVar("T")


class TextReadings:
    """Texts, their tokens and their TF-IDF rows, each made when first asked for."""

    def __init__(self, table: pa.Table, features: Any | None = None) -> None:
        """Begin with the columns of the texts; `features` (n_texts, n_features) is sparse data that came with them."""
        self.table, self.features = table, features
        self._results: dict[Hashable, Any] = {}
        self._lock = threading.RLock()
        self._taken_from: tuple[TextReadings, NDArray[Any]] | None = None

    @classmethod
    def of(cls, texts: Split | Texts | TextReadings) -> TextReadings:
        """Return the texts of a split, or texts in any of the forms that models read; readings as they are."""
        if isinstance(texts, TextReadings):
            return texts
        return cls(texts.texts, texts.features) if isinstance(texts, Split) else cls(as_table(texts))

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: NDArray[Any]) -> TextReadings:
        """Return some of the texts (row numbers, ascending), or these same readings if it is all of them."""
        if len(rows) == len(self):
            return self
        chosen = np.zeros(len(self), bool)
        chosen[rows] = True
        features = None if self.features is None else self.features[rows]
        taken = TextReadings(self.table.filter(pa.array(chosen)), features)
        taken._taken_from = self, rows
        return taken

    def tokens(self, tokeniser: Tokeniser, options: TokenOptions, run: Run, *, stage: str | None = None) -> TokenRows:
        """Return the token ids of all texts; in training they are kept as a stage of the first `run` that asks."""
        key = "tokens", tokeniser.fingerprint, options
        if self._taken_from is not None and key in self._taken_from[0]._results:
            whole, rows = self._taken_from
            return self.once(key, lambda: whole.tokens(tokeniser, options, run).take(rows))
        return self.once(key, lambda: tokenise(self.table, tokeniser, options, run, stage=stage))

    def rows(self, features: TextFeatures, run: Run) -> Rows:
        """Return the TF-IDF row of each text, (n_texts, n_features)."""
        if self._taken_from is not None and features in self._taken_from[0]._results:
            whole, numbers = self._taken_from
            return self.once(features, lambda: Rows.of(whole.rows(features, run).matrix()[numbers]))
        return self.once(features, lambda: features.rows(self.table, self.features, run))

    def cut(self) -> NDArray[np.bool_]:
        """Return which texts (n_texts,) were too long for what has read them so far, which read only their beginning.

        A text exactly as long as the limit counts as cut where another one is.
        """
        cut = np.zeros(len(self), bool)
        for tokens in self._results.values():
            if isinstance(tokens, TokenRows) and tokens.n_cut:
                lengths = tokens.lengths()
                cut |= lengths == lengths.max()
        return cut

    def fit_features(self, split: Split, options: TfidfOptions, run: Run) -> tuple[TextFeatures, Rows]:
        """Learn TF-IDF from the texts, which are those of `split`; return the vectoriser and their rows."""
        features, rows = self.once(("fitted", options), lambda: TextFeatures.fit(split, options, run))
        return features, self.once(features, lambda: rows)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called at most once per key."""
        with self._lock:
            if key not in self._results:
                self._results[key] = make()
            result: T = self._results[key]
            return result
