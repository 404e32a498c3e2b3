"""Labels are changed on the page, with the keyboard alone; skipped where there is no Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail.data.dataset import Dataset
from longtail.methods import load_model
from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.history import log
from longtail.review.store import ReviewStore
from tests.review.browser import SIZES, Desk, Server, faults_of, playwright  # skips where it is missing
from tests.review.conftest import wait_until
from tests.serve.conftest import ADMIN, REVIEWER, trained  # skips where libraries are missing

pytestmark = pytest.mark.slow
TEXTS = ("word0a word0b pump house", "word1a word1b pumps", "word2a word2b word2c")


@pytest.fixture(scope="module")
def saved(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edited") / "m"
    trained(tiny, n_texts=700).save(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A model that may be changed."""
    load_model(saved).save(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with ReviewStore.open(tmp_path / "reviews.db") as opened:
        add_texts(opened, make_queue(opened, "news"), [Record({"text": text}) for text in TEXTS])
    return tmp_path / "reviews.db"


@pytest.fixture
def server(chromium: Any, folder: Path, store: Path, tmp_path: Path) -> Iterator[Server]:
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(f"admin ops {ADMIN}\nreview anna {REVIEWER}\n")
    started = Server(folder, store, "--tokens", str(tokens))
    yield started
    started.end()


@pytest.fixture
def person(chromium: Any, server: Server) -> Iterator[Callable[..., Desk]]:
    """A maker of people who open the page of labels; they sign in with a token."""
    opened: list[Desk] = []

    def make(token: str = ADMIN, place: str = "labels.html", **context: Any) -> Desk:
        opened.append(Desk(chromium, server.url, token, place=place, **context))
        return opened[-1]

    yield make
    for one in opened:
        one.context.close()
        assert not one.faults


def actions(folder: Path) -> list[str]:
    return [edit.action for edit in load_model(folder).label_history]


def choose(ops: Desk, name: str) -> None:
    ops.press("/")
    ops.page.keyboard.type(name)
    ops.sees(name, "#matches li[aria-selected=true]")
    ops.press("Enter")


def test_labels_are_renamed_merged_retired_restored_and_all_of_it_undone(
    person: Callable[..., Desk], folder: Path
) -> None:
    ops = person()
    ops.sees("No label was changed", "#history")
    choose(ops, "word3a")
    ops.sees("word3a", "#chosen-name")
    ops.press("r")
    ops.page.wait_for_selector("dialog[open]")
    ops.page.keyboard.type("Three")
    ops.press("Enter")
    ops.sees("Renamed word3a to Three", "#history li:first-child")
    ops.sees("Three", "#chosen-name")
    ops.press("x")
    ops.sees("Retired Three", "#history li:first-child")
    ops.sees("retired", "#chosen-facts")
    ops.press("x")
    ops.sees("Restored Three", "#history li:first-child")
    ops.press("m")
    ops.sees("Into which label is Three merged?", "#query-label")
    ops.page.keyboard.type("word4a")
    ops.sees("word4a", "#matches li[aria-selected=true]")
    ops.press("Enter")
    ops.sees("Merged Three into word4a", "#history li:first-child")
    assert actions(folder) == ["rename", "retire", "restore", "merge"]
    assert {edit.person for edit in load_model(folder).label_history} == {"ops"}
    for n_undone in range(1, 5):
        ops.page.locator("#chosen").focus()
        ops.press("u")
        playwright.expect(ops.page.locator("#history s")).to_have_count(n_undone)
    assert "word3a" in load_model(folder).vocabulary_.names
    playwright.expect(ops.page.locator("#undo")).to_be_hidden()


def test_a_label_is_added_with_examples_of_the_queue(person: Callable[..., Desk], folder: Path) -> None:
    ops = person()
    ops.sees("No label was changed", "#history")
    ops.press("Escape", "Tab")  # out of the search
    ops.page.locator("#main").click(position={"x": 5, "y": 5})
    ops.press("a")
    ops.page.keyboard.type("Pumps")
    ops.press("Tab")
    ops.page.keyboard.type("heat pump; pump house")
    ops.press("Tab")
    ops.page.keyboard.type("word1a")
    ops.sees("word0a word0b pump house", "#examples")
    ops.sees("word1a word1b pumps", "#examples")
    playwright.expect(ops.page.locator("#examples li")).to_have_count(2)
    ops.press("Tab", "Tab", "Space", "Tab", "Space", "Tab")
    ops.page.keyboard.type("pumps for houses")
    ops.press("Tab", "Enter")
    ops.sees("Added Pumps, 3 examples", "#history li:first-child")
    [edit] = load_model(folder).label_history
    assert (edit.name, edit.alternatives, edit.parents) == ("Pumps", ("heat pump", "pump house"), ("label1",))
    assert edit.examples == tuple({"text": text} for text in (*TEXTS[:2], "pumps for houses"))
    ops.press("a")
    ops.page.keyboard.type("Pumps")
    ops.press("Enter")
    ops.sees("has a label with the id 'pumps' already", "#status")


def test_at_the_desk_a_missing_label_is_made_from_the_text_at_hand(
    person: Callable[..., Desk], folder: Path, store: Path
) -> None:
    ops = person(place="")
    ops.sees("pump house", "#text")
    ops.press("/")
    ops.page.keyboard.type("Pump houses")
    ops.sees("New label: Pump houses", "#matches li[aria-selected=true]")
    ops.press("Enter")
    ops.page.wait_for_selector("dialog[open]")
    ops.press("Enter")
    ops.sees("Pump houses", "#list li.cursor")
    assert "Pump houses" in ops.checked()
    ops.press("Enter")
    ops.sees("pumps", "#text")

    def filed() -> list[list[str]]:
        with ReviewStore.open(store, create=False) as opened:
            return [row["labels"] for row in log(opened)]

    wait_until(lambda: len(filed()) == 1)
    assert filed()[0][-1] == "pump-houses"
    assert [edit.examples for edit in load_model(folder).label_history] == [({"text": TEXTS[0]},)]


def test_a_reviewer_may_look_but_not_change(person: Callable[..., Desk], folder: Path) -> None:
    anna = person(REVIEWER)
    anna.sees("the role admin is needed", "#may-not")
    choose(anna, "word3a")
    anna.sees("word3a", "#chosen-name")
    for hidden in ("#rename", "#making", "#undo"):
        playwright.expect(anna.page.locator(hidden)).to_be_hidden()
    anna.press("x", "r", "a")
    assert not anna.page.locator("dialog[open]").count()
    assert actions(folder) == []
    at_the_desk = person(REVIEWER, "")
    at_the_desk.sees("pump house", "#text")
    at_the_desk.press("/")
    at_the_desk.page.keyboard.type("zzzz")
    at_the_desk.sees("No label fits", "#status")
    assert not at_the_desk.page.locator("#matches li").count()


def test_the_page_of_labels_speaks_german(person: Callable[..., Desk]) -> None:
    ops = person(locale="de-DE")
    ops.sees("Seit dem Training wurde kein Schlagwort geändert", "#history")
    assert ops.page.get_attribute("html", "lang") == "de"
    choose(ops, "word3a")
    ops.press("x")
    ops.sees("word3a stillgelegt", "#history")
    ops.page.click("#language")
    ops.sees("Retired word3a", "#history")


@pytest.mark.parametrize(("scheme", "size"), [("light", "desktop"), ("dark", "phone")])
def test_axe_finds_no_violation_on_the_page_of_labels(person: Callable[..., Desk], scheme: str, size: str) -> None:
    ops = person(color_scheme=scheme, viewport=SIZES[size])
    ops.sees("No label was changed", "#history")
    ops.page.keyboard.type("word")
    ops.sees("word", "#matches li[aria-selected=true]")
    assert faults_of(ops.page) == []
    ops.press("Enter", "x")
    ops.sees("Retired", "#history")
    ops.page.fill("#new-name", "Pumps")
    ops.press("Tab")
    ops.sees("pump house", "#examples")
    assert faults_of(ops.page) == []
    ops.page.locator("#chosen").focus()
    ops.press("r")
    ops.page.wait_for_selector("dialog[open]")
    assert faults_of(ops.page) == []
