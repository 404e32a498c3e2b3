"""What `predict` returns: for each text a list of suggested labels, best first.

    predictions = model.predict(["a text editor for gnome"], k=5)
    predictions[0][0].name          the best label of the first text
    predictions.to_pandas()         one row per suggestion

It is a list of lists, so everything that works with lists works with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, overload

from longtail.errors import MissingExtraError
from longtail.notebook import SHOWN_ROWS, html_table, shorten

Route: TypeAlias = Literal["automatic", "review", "hard"]
"""Who should look at a text: nobody, somebody, or somebody who knows more than the list."""
AUTOMATIC, HARD = 0.8, 0.4
"""Texts with at least this predicted recall are automatic; texts with less than this one are hard."""


def route_of(predicted_recall: float) -> Route:
    """Return who should look at a text whose list has this predicted recall."""
    return "automatic" if predicted_recall >= AUTOMATIC else "review" if predicted_recall >= HARD else "hard"


class Suggestion(NamedTuple):
    """A label for a text."""

    id: str
    name: str
    score: float


class Predictions(list[list[Suggestion]]):
    """Suggested labels, one list per text, best first; a list that can also be turned into a table.

    For example:

        predictions[0]                    the labels of the first text: Suggestion(id, name, score), ...
        predictions.predicted_recall[0]   the share of the text's labels that are expected to be among them
        predictions.routes[0]             "automatic", "review" or "hard", by the predicted recall
        predictions.to_pandas()           one row per suggestion

    Predicted recall and routes are None where a model's scores are not calibrated.
    """

    predicted_recall: list[float] | None

    def __init__(self, rows: Iterable[list[Suggestion]] = (), predicted_recall: list[float] | None = None) -> None:
        super().__init__(rows)
        self.predicted_recall = predicted_recall

    @property
    def routes(self) -> list[Route] | None:
        """Who should look at each text."""
        if self.predicted_recall is None:
            return None
        return [route_of(recall) for recall in self.predicted_recall]

    @overload
    def __getitem__(self, rows: SupportsIndex) -> list[Suggestion]: ...
    @overload
    def __getitem__(self, rows: slice) -> Predictions: ...
    def __getitem__(self, rows: SupportsIndex | slice) -> list[Suggestion] | Predictions:
        picked = super().__getitem__(rows)
        if not isinstance(rows, slice):
            return picked  # type: ignore[return-value]
        recall = None if self.predicted_recall is None else self.predicted_recall[rows]
        return Predictions(picked, recall)  # type: ignore[arg-type]

    def to_arrow(self) -> Any:
        """Return an Arrow table with one row per suggestion.

        Its columns are row (of the text, from 0), rank (from 1), id, name and score; then predicted_recall and route of
        the text, if scores are calibrated.
        """
        import pyarrow as pa

        flat = [(row, rank, *label) for row, labels in enumerate(self) for rank, label in enumerate(labels, 1)]
        kinds = {"row": pa.int64(), "rank": pa.int64(), "id": pa.string(), "name": pa.string(), "score": pa.float64()}
        columns = zip(*flat, strict=True) if flat else ([] for _ in kinds)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
        table = pa.table(dict(zip(kinds, arrays, strict=True)))
        if self.predicted_recall is None:
            return table
        of_texts = {"predicted_recall": pa.array(self.predicted_recall, pa.float64())}
        of_texts |= {"route": pa.array(self.routes, pa.string())}
        for name, column in of_texts.items():
            table = table.append_column(name, column.take(table["row"]))
        return table

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
