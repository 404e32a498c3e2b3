"""The page in a real browser, with the keyboard alone; skipped where there is no Chromium."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail.data.dataset import Dataset
from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.history import log, opinions
from longtail.review.store import ReviewStore
from tests.review.browser import SCHEMES, SIZES, Desk, Server, faults_of, playwright  # skips where it is missing
from tests.review.conftest import wait_until
from tests.serve.conftest import REVIEWER, trained  # skips where libraries are missing

pytestmark = pytest.mark.slow
N_TEXTS = 12


def text_of(number: int) -> str:
    return f"text {number}: word{number}a word{number}b word{number}c"


@pytest.fixture(scope="module")
def model(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    trained(tiny).save(folder)
    return folder


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reviews") / "reviews.db"


@pytest.fixture(scope="module")
def server(chromium: Any, model: Path, shared_store: Path) -> Iterator[Server]:
    """A server that tests share; each takes a queue of its own."""
    ReviewStore.open(shared_store).close()
    started = Server(model, shared_store)
    yield started
    started.end()


@pytest.fixture
def queue(request: pytest.FixtureRequest, shared_store: Path) -> str:
    """A queue of this test's own, with texts of one label each."""
    name = re.sub(r"\W+", "-", request.node.name)[-60:]
    with ReviewStore.open(shared_store) as store:
        texts = [Record({"text": text_of(number)}) for number in range(N_TEXTS)]
        add_texts(store, make_queue(store, name), texts)
    return name


@pytest.fixture
def desk(chromium: Any, server: Server, queue: str) -> Iterator[Callable[..., Desk]]:
    """A maker of people at the page."""
    desks: list[Desk] = []

    def make(person: str = "ada", **context: Any) -> Desk:
        desks.append(Desk(chromium, server.url, person, **({"queue": queue} | context)))
        return desks[-1]

    yield make
    for one in desks:
        one.context.close()
        assert not one.faults


def desk_is_open(person: Desk) -> bool:
    return bool(person.page.locator("#desk").is_visible())


def kept(store: Path, queue: str) -> list[dict[str, Any]]:
    with ReviewStore.open(store, create=False) as opened:
        return [row for row in log(opened) if row["queue"] == queue]


def test_a_text_that_is_all_correct_is_accepted_with_one_keystroke(
    desk: Callable[..., Desk], shared_store: Path, queue: str
) -> None:
    ada = desk()
    ada.sees("text 0")
    assert ada.checked() == ["word0a"]
    ada.press("Enter")
    ada.sees("text 1")
    ada.sees("1 label accepted: word0a", "#status")
    wait_until(lambda: len(kept(shared_store, queue)) == 1)
    [row] = kept(shared_store, queue)
    assert (row["labels"], row["keystrokes"], row["person"], row["kind"]) == (["label0"], 1, "ada", "accept")
    assert row["suggested"][0]["checked"]
    assert len(row["suggested"]) >= 9
    assert 0 < row["seconds"] < 600


def test_digits_toggle_and_numbers_never_move(desk: Callable[..., Desk], shared_store: Path, queue: str) -> None:
    ada = desk()
    ada.sees("text 0")
    names = ada.page.locator("#list .label").all_inner_texts()
    ada.press("3", "1")
    assert ada.page.locator("#list .label").all_inner_texts() == names
    assert ada.checked() == [names[2]]
    ada.press("1", "3", "ArrowDown", " ", "Enter")
    ada.sees("text 1")
    wait_until(lambda: len(kept(shared_store, queue)) == 1)
    [row] = kept(shared_store, queue)
    assert row["labels"] == [row["suggested"][0]["id"], row["suggested"][3]["id"]]
    assert row["keystrokes"] == 7


def test_a_missing_label_is_found_by_another_name_and_added(
    desk: Callable[..., Desk], shared_store: Path, queue: str
) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.press("/")
    ada.page.keyboard.type("word11b")
    ada.sees("word11a", "#matches li[aria-selected=true]")
    ada.press("Enter")
    assert "word11a" in ada.checked()
    assert "word0a" in ada.checked()
    ada.press("Enter")
    ada.sees("text 1")
    wait_until(lambda: len(kept(shared_store, queue)) == 1)
    assert kept(shared_store, queue)[0]["labels"] == ["label0", "label11"]


def test_why_marks_the_words_that_speak_for_a_label(desk: Callable[..., Desk]) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.press("?")
    ada.sees("Why word0a?", "#why-title")
    ada.sees("Words that speak for it", "#reasons")
    assert {"word0a", "word0b", "word0c"} <= set(ada.page.locator("#fields mark.for").all_inner_texts())
    ada.press("?")
    playwright.expect(ada.page.locator("#why")).to_be_hidden()
    assert ada.page.locator("#fields mark").count() == 0


def test_undo_brings_the_last_text_back_also_after_a_reload(
    desk: Callable[..., Desk], shared_store: Path, queue: str
) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.press("2", "Enter")
    ada.sees("text 1")
    ada.press("u")
    ada.sees("text 0")
    assert len(ada.checked()) == 2
    ada.press("2", "/")
    ada.page.keyboard.type("word11b")
    ada.sees("word11a", "#matches li[aria-selected=true]")
    ada.press("Enter", "Enter")
    ada.sees("text 1")
    wait_until(lambda: len(kept(shared_store, queue)) == 3)
    ada.page.reload()
    ada.sees("text 1")
    ada.press("u")
    ada.sees("text 0")
    assert ada.checked() == ["word0a", "word11a"], "a label that was found by its name has it again"
    wait_until(lambda: len(kept(shared_store, queue)) == 4)
    assert [row["kind"] for row in kept(shared_store, queue)] == ["accept", "undo", "accept", "undo"]


def test_a_skipped_text_waits_for_somebody_else(desk: Callable[..., Desk]) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.press("s")
    ada.sees("text 1")
    bob = desk("bob")
    bob.sees("text 0")


def accept(person: Desk) -> None:
    """Press Enter until the desk has gone on: while a text is being fetched, it is not taken."""
    before, pressed = person.page.text_content("#fields"), 0.0

    def has_gone_on() -> bool:
        nonlocal pressed
        if not desk_is_open(person) or person.page.text_content("#fields") != before:
            return True
        if time.monotonic() - pressed > 3:
            person.press("Enter")
            pressed = time.monotonic()
        return False

    wait_until(has_gone_on)


def test_two_people_never_get_the_same_text(desk: Callable[..., Desk], shared_store: Path, queue: str) -> None:
    people = [desk("ada"), desk("bob")]
    for person in people:
        person.sees("text")
    for number in range(N_TEXTS):
        person = people[number % 2]
        if desk_is_open(person):
            accept(person)
    wait_until(lambda: len(kept(shared_store, queue)) >= N_TEXTS - 4)
    rows = kept(shared_store, queue)
    assert len({row["text_id"] for row in rows}) == len(rows)
    assert {row["person"] for row in rows} == {"ada", "bob"}


def test_who_is_faster_than_the_server_gets_no_text_twice(
    desk: Callable[..., Desk], shared_store: Path, queue: str
) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.page.wait_for_timeout(1000)  # the next text is fetched ahead
    late: list[Any] = []
    ada.page.route("**/next", lambda request: late.append(request) if len(late) < 2 else request.continue_())
    ada.press("Enter")
    ada.sees("text 1")
    ada.press("Enter")  # while the text after it is on its way, another request asks for it
    wait_until(lambda: ada.page.wait_for_timeout(50) is None and len(late) == 2)
    for request in late:
        request.continue_()
    for number in range(2, 5):
        ada.sees(f"text {number}")
        ada.press("Enter")
    ada.sees("text 5")
    wait_until(lambda: len(kept(shared_store, queue)) == 5)
    assert len({row["text_id"] for row in kept(shared_store, queue)}) == 5


def test_a_lost_connection_loses_nothing(desk: Callable[..., Desk], shared_store: Path, queue: str) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.page.wait_for_timeout(1000)  # the next text is fetched ahead
    ada.context.set_offline(True)
    ada.press("Enter")
    ada.sees("text 1")
    ada.sees("No connection: 1 decision waits", "#status")
    assert kept(shared_store, queue) == []
    ada.context.set_offline(False)
    wait_until(lambda: len(kept(shared_store, queue)) == 1)
    ada.sees("text 1")
    ada.press("Enter")
    ada.sees("text 2")
    wait_until(lambda: len(kept(shared_store, queue)) == 2)


def test_decisions_outlive_a_killed_server_and_a_reload_of_the_page(chromium: Any, model: Path, tmp_path: Path) -> None:
    store = tmp_path / "reviews.db"
    with ReviewStore.open(store) as opened:
        add_texts(opened, make_queue(opened, "news"), [Record({"text": text_of(number)}) for number in range(5)])
    server = Server(model, store)
    try:
        ada = Desk(chromium, server.url)
        ada.sees("text 0")
        ada.page.wait_for_timeout(1000)
        server.end(signal.SIGKILL)
        ada.press("Enter")
        ada.sees("No connection: 1 decision waits", "#status")
        server.start()
        ada.page.reload()
        wait_until(lambda: len(kept(store, "news")) == 1)
        ada.sees("text 1")
        ada.context.close()
    finally:
        server.end()
    with ReviewStore.open(store, create=False) as opened:
        assert [(one.person, one.labels) for one in opinions(opened)] == [("ada", ("label0",))]


def test_a_pasted_text_and_a_dropped_document_are_tagged_and_filed(
    desk: Callable[..., Desk], shared_store: Path, queue: str, tmp_path: Path
) -> None:
    ada = desk()
    ada.sees("text 0")
    ada.press("n")
    ada.page.keyboard.type("pasted word5a word5b word5c")
    ada.press("Control+Enter")
    ada.sees("pasted")
    assert ada.checked() == ["word5a"]
    (tmp_path / "a.html").write_text("<title>Dropped</title><p>word7a word7b word7c")
    ada.page.set_input_files("#file", tmp_path / "a.html")
    ada.sees("Dropped", "#text-title")
    ada.press("Enter")
    ada.sees("pasted")
    ada.press("Enter")
    ada.sees("text 0")
    wait_until(lambda: len(kept(shared_store, queue)) == 2)
    assert [row["labels"] for row in kept(shared_store, queue)] == [["label7"], ["label5"]]


def test_with_tokens_the_page_asks_for_one_and_knows_the_name(chromium: Any, model: Path, tmp_path: Path) -> None:
    with ReviewStore.open(tmp_path / "reviews.db") as store:
        add_texts(store, make_queue(store, "news"), [Record({"text": text_of(3)})])
    (tmp_path / "tokens.txt").write_text(f"review anna {REVIEWER}\n")
    server = Server(model, tmp_path / "reviews.db", "--tokens", str(tmp_path / "tokens.txt"))
    try:
        anna = Desk(chromium, server.url, REVIEWER)
        anna.sees("text 3")
        anna.press("Enter")
        wait_until(lambda: len(kept(tmp_path / "reviews.db", "news")) == 1)
        assert kept(tmp_path / "reviews.db", "news")[0]["person"] == "anna"
        anna.context.close()
    finally:
        server.end()


def test_without_a_store_the_page_tags_and_explains(chromium: Any, model: Path) -> None:
    server = Server(model, None)
    try:
        ada = Desk(chromium, server.url, person="")
        ada.page.wait_for_selector("#pasted")
        ada.page.fill("#pasted", text_of(4))
        ada.press("Control+Enter")
        ada.sees("text 4")
        assert ada.checked() == ["word4a"]
        ada.press("?")
        ada.sees("Words that speak for it", "#reasons")
        ada.press("Enter")
        ada.sees("kept nowhere", "#status")
        assert not ada.faults
        ada.context.close()
    finally:
        server.end()


def test_the_page_speaks_german_and_switches(desk: Callable[..., Desk]) -> None:
    ada = desk(locale="de-DE")
    ada.sees("text 0")
    ada.sees("Übernehmen", "#accept")
    assert ada.page.get_attribute("html", "lang") == "de"
    ada.page.click("#language")
    ada.sees("Accept", "#accept")
    ada.sees("accept what is checked", "#hints")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_screen(
    desk: Callable[..., Desk], server: Server, scheme: str, size: str
) -> None:
    ada = desk(color_scheme=scheme, viewport=SIZES[size])

    def check() -> None:
        assert faults_of(ada.page) == []

    ada.sees("text 0")
    check()
    ada.press("?")
    ada.sees("Words that speak for it", "#reasons")
    check()
    ada.press("/")
    ada.page.keyboard.type("word1")
    ada.sees("word1a", "#matches li[aria-selected=true]")
    check()
    ada.press("Escape", "Enter")
    ada.sees("text 1")
    ada.press("n")
    ada.page.wait_for_selector("#pasted")
    check()
    ada.page.goto(f"{server.url}/dashboard.html")
    ada.page.wait_for_selector("#charts table")
    check()
