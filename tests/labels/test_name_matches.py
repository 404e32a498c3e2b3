"""Names in texts: in any form and order, longest first, and homonyms apart."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.kernels.reference.names import STATS
from longtail.labels.name_matches import NameOptions, NameTable

NAMES = {
    "seat": "Bank (Möbel)",
    "money": "Bank (Finanzen)",
    "gas": "greenhouse gas",
    "emission": "emission of greenhouse gases",
    "steel": "steel",
    "of": "of the",
    "long": "iron copper zinc lead tin gold silver",
}
ALTERNATIVES = {"steel": ["Stahl", "steels"], "gas": ["CO2"]}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.of(list(NAMES), NAMES, ALTERNATIVES)


@pytest.fixture(scope="module")
def table(vocabulary: Vocabulary) -> NameTable:
    return NameTable.of(vocabulary, NameOptions())


def matched(table: NameTable, text: str, **columns: str) -> dict[str, dict[str, Any]]:
    """The stats of the labels of one text, by label id."""
    matches = table.match(pa.table({"text": [text], **{name: [value] for name, value in columns.items()}}))
    ids = [list(NAMES)[label] for label in matches.labels]
    return {label: dict(zip(STATS, row, strict=True)) for label, row in zip(ids, matches.stats.tolist(), strict=True)}


def test_names_occur_in_any_form_and_order_of_words(table: NameTable) -> None:
    assert set(matched(table, "Greenhouse gases and their emission")) == {"gas", "emission"}
    assert matched(table, "emissions of greenhouse gas")["emission"]["ordered"] == 1
    assert matched(table, "greenhouse gas emissions")["emission"]["ordered"] == 0
    assert set(matched(table, "a greenhouse for gas lamps, without emission")) == {"gas"}
    assert not matched(table, "a greenhouse, not heated with gas")


def test_a_name_inside_a_longer_one_is_covered_by_it(table: NameTable) -> None:
    inside = matched(table, "the emission of greenhouse gases")
    assert inside["gas"]["free"] == 0
    assert inside["gas"]["count"] == 1
    assert inside["emission"]["free"] == 1
    both = matched(table, "the emission of greenhouse gases, of carbon and greenhouse gases")
    assert both["gas"]["free"] == 1
    assert both["gas"]["count"] == 2


def test_the_words_of_a_qualifier_need_not_occur_but_speak_for_their_homonym(table: NameTable) -> None:
    plain = matched(table, "Die Bank und der Tisch")
    assert plain["seat"] == plain["money"]
    assert plain["seat"]["rivals"] == 2
    assert plain["seat"]["qualified"] == 1
    clear = matched(table, "Die Bank und andere Möbel der Küche")
    assert (clear["seat"]["clue"], clear["seat"]["rival_clue"]) == (1, 0)
    assert (clear["money"]["clue"], clear["money"]["rival_clue"]) == (0, 1)


def test_other_names_of_a_label_count_as_its_own(table: NameTable) -> None:
    one = matched(table, "der Stahl und das CO2 bei der Erzeugung")
    assert set(one) == {"steel", "gas"}
    assert one["steel"]["preferred"] == 0
    assert matched(table, "steel and steels")["steel"]["count"] == 2  # one name, though two are written alike


def test_parts_of_compounds_are_told_from_words(table: NameTable) -> None:
    assert matched(table, "die Stahlbank in der Küche")["steel"]["whole"] == 0
    assert matched(table, "der Stahl und die Stahlbank")["steel"]["whole"] == 1


def test_matches_in_the_title_are_counted(table: NameTable) -> None:
    assert matched(table, "steel and steel", title="On steel")["steel"]["title"] == 1
    assert matched(table, "steel and steel", title="On steel")["steel"]["count"] == 3
    assert matched(table, "steel " + "word " * 20 + "steel")["steel"]["title"] == 1


def test_names_of_function_words_alone_and_very_long_names_are_left_out(table: NameTable) -> None:
    assert matched(table, f"of the steel: {NAMES['long']}").keys() == {"steel"}


def test_texts_without_a_name_have_no_matches(table: NameTable) -> None:
    matches = table.match(pa.table({"text": ["", "nothing here", "steel"]}))
    assert matches.indptr.tolist() == [0, 0, 0, 1]
    assert matches.texts().tolist() == [2]
    assert table.match(pa.table({"text": pa.array([], pa.string())})).indptr.tolist() == [0]


def test_labels_that_are_called_by_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="labels must have names to be found in texts"):
        NameTable.of(Vocabulary.of(["1", "2-3"]), NameOptions())


def test_fields_say_what_is_read() -> None:
    assert NameOptions().options_for_fields("title,text") == {"title": "title", "columns": ["text"]}
    assert NameOptions().options_for_fields("body") == {"title": None, "columns": ["body"]}
    with pytest.raises(ConfigError, match="fields must be different"):
        NameOptions().options_for_fields("text,text")
