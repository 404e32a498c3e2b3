"""What `predict` returns: a list of lists that becomes a table, and is short where it is shown."""

from __future__ import annotations

import json
import pickle
import sys

import pytest

from longtail.errors import MissingExtraError
from longtail.predictions import Predictions, Suggestion

ROWS = [[Suggestion("a", "Apple", 0.9), Suggestion("b", "<b>Bee</b>", 0.5)], [], [Suggestion("a", "Apple", 0.1)]]


def test_it_is_a_list_of_lists() -> None:
    predictions = Predictions(ROWS)
    assert predictions == ROWS
    assert isinstance(predictions, list)
    assert predictions[0] == ROWS[0]
    assert predictions[-1][0].id == "a"
    assert list(predictions) == ROWS
    assert json.loads(json.dumps(predictions))[0][1] == ["b", "<b>Bee</b>", 0.5]
    assert pickle.loads(pickle.dumps(predictions)) == ROWS


def test_a_slice_can_be_turned_into_a_table_too() -> None:
    assert isinstance(Predictions(ROWS)[1:], Predictions)
    assert Predictions(ROWS)[1:] == ROWS[1:]
    assert Predictions(ROWS)[2:].to_arrow()["row"].to_pylist() == [0]


def test_tables_have_one_row_per_suggestion() -> None:
    expected = {
        "row": [0, 0, 2],
        "rank": [1, 2, 1],
        "id": ["a", "b", "a"],
        "name": ["Apple", "<b>Bee</b>", "Apple"],
        "score": [0.9, 0.5, 0.1],
    }
    predictions = Predictions(ROWS)
    assert predictions.to_arrow().to_pydict() == expected
    assert predictions.to_pandas().to_dict("list") == expected
    assert predictions.to_polars().to_dict(as_series=False) == expected
    assert list(Predictions([]).to_pandas().columns) == list(expected)
    assert Predictions([[]]).to_arrow().num_rows == 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "pandas":
        monkeypatch.setattr(Predictions, "to_arrow", lambda self: NoPandas())
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"pip install {library}"):
        getattr(Predictions(ROWS), f"to_{library}")()


class NoPandas:
    """An Arrow table where pandas is not installed."""

    def to_pandas(self) -> None:
        raise ModuleNotFoundError("No module named 'pandas'")


def test_it_is_short_where_it_is_shown_and_html_is_escaped() -> None:
    assert repr(Predictions(ROWS)).splitlines() == [
        "Predictions for 3 texts",
        "0: Apple 0.9, <b>Bee</b> 0.5",
        "1: ",
        "2: Apple 0.1",
    ]
    many = Predictions(ROWS * 100)
    assert repr(many).splitlines()[-1] == "… and 290 more"
    assert len(repr(many)) < 2000
    page = many._repr_html_()
    assert "&lt;b&gt;Bee" in page
    assert "<b>" not in page
    assert "and 290 more" in page
