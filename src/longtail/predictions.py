"""What `predict` returns: for each text a list of suggested labels, best first.

    predictions = model.predict(["a text editor for gnome"], k=5)
    predictions[0][0].name          the best label of the first text
    predictions.to_pandas()         one row per suggestion

It is a list of lists, so everything that works with lists works with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex, overload

from longtail.errors import MissingExtraError
from longtail.notebook import SHOWN_ROWS, html_table, shorten


class Suggestion(NamedTuple):
    """A label for a text."""

    id: str
    name: str
    score: float


class Predictions(list[list[Suggestion]]):
    """Suggested labels, one list per text, best first; a list that can also be turned into a table.

    For example:

        predictions[0]               the labels of the first text: Suggestion(id, name, score), ...
        predictions.to_pandas()      one row per suggestion
    """

    @overload
    def __getitem__(self, rows: SupportsIndex) -> list[Suggestion]: ...
    @overload
    def __getitem__(self, rows: slice) -> Predictions: ...
    def __getitem__(self, rows: SupportsIndex | slice) -> list[Suggestion] | Predictions:
        picked = super().__getitem__(rows)
        return Predictions(picked) if isinstance(rows, slice) else picked  # type: ignore[arg-type, return-value]

    def to_arrow(self) -> Any:
        """Return an Arrow table with one row per suggestion.

        Its columns are row (of the text, from 0), rank (from 1), id, name and score.
        """
        import pyarrow as pa

        flat = [(row, rank, *label) for row, labels in enumerate(self) for rank, label in enumerate(labels, 1)]
        kinds = {"row": pa.int64(), "rank": pa.int64(), "id": pa.string(), "name": pa.string(), "score": pa.float64()}
        columns = zip(*flat, strict=True) if flat else ([] for _ in kinds)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
        return pa.table(dict(zip(kinds, arrays, strict=True)))

    def to_pandas(self) -> Any:
        """Return a pandas data frame with the columns of `to_arrow`."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise MissingExtraError("to_pandas needs pandas; install it with pip install pandas") from error

    def to_polars(self) -> Any:
        """Return a polars data frame with the columns of `to_arrow`."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtraError("to_polars needs polars; install it with pip install polars") from error
        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        lines = [f"{row}: {self._line(row)}" for row in range(min(len(self), SHOWN_ROWS))]
        more = [f"… and {len(self) - SHOWN_ROWS:,} more"] if len(self) > SHOWN_ROWS else []
        return "\n".join([f"Predictions for {len(self):,} {'text' if len(self) == 1 else 'texts'}", *lines, *more])

    def _repr_html_(self) -> str:
        rows = [(row, self._line(row)) for row in range(min(len(self), SHOWN_ROWS))]
        title = f"Predictions for {len(self):,} {'text' if len(self) == 1 else 'texts'}"
        return html_table(title, rows, ("row", "labels"), len(self) - len(rows))

    def _line(self, row: int) -> str:
        return shorten(", ".join(f"{label.name} {label.score:.3g}" for label in self[row]), 110)
