"""The desk over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from longtail.data.dataset import Dataset
from longtail.predictions import route_of
from longtail.review.adding import Record, add_texts, find_queue, make_queue
from longtail.review.history import log, opinions
from longtail.review.page import documents_router, page
from longtail.review.router import review_router
from longtail.review.store import ReviewStore
from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.settings import ServeSettings
from tests.serve.conftest import REVIEWER, TAGGER, bearer, problem, trained  # skips where libraries are missing

WORDS = "word1a word1b word1c"


@pytest.fixture(scope="module")
def models(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    trained(tiny).save(folder)
    return Models.open({"tiny": folder})


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A store with two texts in the queue `news`."""
    with ReviewStore.open(tmp_path / "reviews.db") as store:
        add_texts(store, make_queue(store, "news"), [Record({"text": WORDS}), Record({"text": "word2a word2b word2c"})])
    return tmp_path / "reviews.db"


@pytest.fixture
def client(models: Models, reviews: Path) -> Iterator[Callable[..., TestClient]]:
    with ExitStack() as stack:

        def make(**settings: Any) -> TestClient:
            routers = [documents_router(), review_router(reviews)]
            app = create_app(models, ServeSettings.of(settings), routers=routers, mounts={"/": page()})
            return stack.enter_context(TestClient(app, raise_server_exceptions=False))

        yield make


def following(asked: TestClient, person: str = "ada", **more: Any) -> Any:
    answer = asked.post("/v1/review/queues/news/next", json={"person": person, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["item"]


def filing(item: Any, key: str = "a-key-of-mine", **more: Any) -> dict[str, Any]:
    shown = [{name: one[name] for name in ("id", "name", "score", "checked")} for one in item["suggested"]]
    checked = [one["id"] for one in shown if one["checked"]]
    filed = {"key": key, "text": item["text"], "person": "ada", "labels": checked, "suggested": shown}
    return {**filed, "revision": item["revision"], "threshold": item["threshold"], **more}


def test_the_next_text_comes_with_suggestions_as_they_will_be_filed(client: Callable[..., TestClient]) -> None:
    item = following(client())
    assert item["fields"] == {"text": WORDS}
    first = item["suggested"][0]
    assert (first["id"], first["name"], first["path"], first["checked"]) == ("label1", "word1a", ["odd"], True)
    assert [one["checked"] for one in item["suggested"]] == [
        one["score"] >= item["threshold"] for one in item["suggested"]
    ]
    assert len(item["suggested"]) >= 9


def test_two_people_get_different_texts_and_then_nothing(client: Callable[..., TestClient]) -> None:
    asked = client()
    first, second = following(asked, "ada"), following(asked, "bob")
    assert first["text"] != second["text"]
    assert following(asked, "cyd") is None
    assert following(asked, "ada")["text"] == first["text"]
    assert following(asked, "ada", without=[first["text"]]) is None


def test_a_decision_is_kept_with_what_was_shown_and_once(client: Callable[..., TestClient], reviews: Path) -> None:
    asked = client()
    item = following(asked)
    body = filing(item, seconds=1.5, keystrokes=1)
    answers = [asked.post("/v1/review/queues/news/decisions", json=body) for _ in range(2)]
    assert [answer.json()["repeated"] for answer in answers] == [False, True]
    with ReviewStore.open(reviews) as store:
        [row] = log(store)
    assert row["labels"] == ["label1"]
    assert [one["id"] for one in row["suggested"]] == [one["id"] for one in item["suggested"]]
    assert (row["model"], row["keystrokes"], row["person"]) == (item["revision"], 1, "ada")


def test_undo_brings_the_text_back_with_what_was_filed(client: Callable[..., TestClient]) -> None:
    asked = client()
    item = following(asked)
    asked.post("/v1/review/queues/news/decisions", json=filing(item, labels=["label7"], names={"label7": "word7a"}))
    undone = asked.post("/v1/review/queues/news/undo", json={"key": "undo-number-1", "person": "ada"}).json()
    assert (undone["item"]["text"], undone["item"]["filed"]) == (item["text"], ["label7"])
    again = asked.post("/v1/review/queues/news/undo", json={"key": "undo-number-2", "person": "ada"}).json()
    assert again["item"] is None


def test_a_skipped_text_goes_to_others(client: Callable[..., TestClient]) -> None:
    asked = client()
    item = following(asked)
    asked.post("/v1/review/queues/news/decisions", json=filing(item, kind="skip"))
    assert following(asked, "ada")["text"] != item["text"]
    assert following(asked, "bob")["text"] == item["text"]


def test_a_text_that_is_brought_is_claimed_and_makes_its_queue(client: Callable[..., TestClient]) -> None:
    asked = client()
    body = {"person": "ada", "fields": {"text": WORDS, "title": "A title"}}
    answer = asked.post("/v1/review/queues/desk/texts", json=body).json()
    assert answer["item"]["fields"] == body["fields"]
    assert answer["progress"] == {"texts": 1, "done": 0, "claimed": 1, "skipped": 0, "waiting": 0}
    listed = asked.get("/v1/review/queues").json()["queues"]
    assert [queue["name"] for queue in listed] == ["news", "desk"]


def test_a_blind_text_shows_nothing_and_keeps_what_would_have_been_shown(
    client: Callable[..., TestClient], reviews: Path
) -> None:
    with ReviewStore.open(reviews) as store:
        add_texts(store, make_queue(store, "blind", {"blind": 1.0}), [Record({"text": WORDS})])
    asked = client()
    item = asked.post("/v1/review/queues/blind/next", json={"person": "ada"}).json()["item"]
    assert (item["blind"], item["suggested"], item["route"]) == (True, [], None)
    asked.post("/v1/review/queues/blind/decisions", json=filing(item, labels=["label1"]))
    with ReviewStore.open(reviews) as store:
        [opinion] = opinions(store, find_queue(store, "blind"))
    assert opinion.blind
    assert opinion.suggested[0]["id"] == "label1"


def test_texts_of_a_queue_are_found_by_their_words(client: Callable[..., TestClient]) -> None:
    asked = client()
    asked.post("/v1/review/queues/news/texts", json={"person": "ada", "fields": {"text": "Heat Pumps", "title": "A"}})
    found = asked.get("/v1/review/queues/news/texts", params={"q": "pump heat"}).json()["texts"]
    assert [one["fields"] for one in found] == [{"text": "Heat Pumps", "title": "A"}]
    problem(asked.get("/v1/review/queues/none/texts"), 404)


def test_the_route_of_a_text_is_that_of_its_checked_labels(
    tiny: Callable[..., Dataset], tmp_path: Path, reviews: Path
) -> None:
    trained(tiny, n_texts=700).save(tmp_path / "m")
    models = Models.open({"m": tmp_path / "m"})
    with TestClient(create_app(models, routers=[review_router(reviews)])) as asked:
        item = following(asked)
    calibration = models.default.method.calibration
    assert calibration is not None
    scores = np.array([[one["score"] for one in item["suggested"]]])
    [recall] = calibration.recall.in_lists(scores, scores[:, [one["checked"] for one in item["suggested"]]])
    assert item["route"] == route_of(recall)


def test_figures_are_those_of_the_library(client: Callable[..., TestClient]) -> None:
    asked = client()
    asked.post("/v1/review/queues/news/decisions", json=filing(following(asked)))
    figures = asked.get("/v1/review/queues/news/stats").json()
    assert figures["acceptance"]["all_correct"] == 1.0
    assert figures["progress"]["done"] == 1


def test_a_text_longer_than_the_server_takes_is_still_shown(client: Callable[..., TestClient], reviews: Path) -> None:
    with ReviewStore.open(reviews) as store:
        add_texts(store, make_queue(store, "long"), [Record({"text": f"{WORDS} " * 100})])
    asked = client(max_characters=200)
    item = asked.post("/v1/review/queues/long/next", json={"person": "ada"}).json()["item"]
    assert len(item["fields"]["text"]) > 2000
    assert item["suggested"][0]["id"] == "label1"
    answer = asked.post("/v1/review/queues/long/texts", json={"person": "ada", "fields": {"text": "a " * 200}})
    assert "must have at most 200 characters" in problem(answer, 422)


def test_documents_are_read(client: Callable[..., TestClient]) -> None:
    asked = client()
    answer = asked.post("/v1/documents", params={"name": "a.txt"}, content="Größe".encode())
    assert answer.json() == {"fields": {"text": "Größe"}}
    answer = asked.post("/v1/documents", params={"name": "a.exe"}, content=b"MZ")
    assert "must end in .txt" in problem(answer, 422)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("queues/none/next", {"person": "ada"}, 404, "there is no queue 'none'"),
        ("queues/news/next", {}, 422, "`person` must be the visible name of who reviews"),
        ("queues/news/next", {"person": "a\nb"}, 422, "`person` must be the visible name"),
        ("queues/news/next", {"person": "ada", "without": [10**30]}, 422, "the request cannot be used"),
        ("queues/news/next", {"person": "ada", "model": "none"}, 404, "there is no model 'none'"),
        ("queues/news/texts", {"person": "ada", "fields": {"text": " "}}, 422, "must have a field that is not empty"),
        ("queues/a%0Ab/texts", {"person": "ada", "fields": {"text": "a"}}, 422, "the name of a queue must be"),
        ("queues/news/decisions", {"key": "12345678", "text": 99, "person": "ada"}, 404, "there is no text 99"),
        ("queues/news/decisions", {"key": "short", "text": 1, "person": "ada"}, 422, "the request cannot be used"),
        ("queues/news/decisions", {"key": "12345678", "text": 1, "person": "ada", "x": 1}, 422, "unknown field `x`"),
    ],
)
def test_what_cannot_be_used_is_a_problem(
    client: Callable[..., TestClient], path: str, body: Any, status: int, words: str
) -> None:
    assert words in problem(client().post(f"/v1/review/{path}", json=body), status)


def test_a_text_of_another_queue_is_refused(client: Callable[..., TestClient]) -> None:
    asked = client()
    item = asked.post("/v1/review/queues/desk/texts", json={"person": "ada", "fields": {"text": "other"}}).json()[
        "item"
    ]
    assert "there is no text" in problem(asked.post("/v1/review/queues/news/decisions", json=filing(item)), 404)


def test_all_routes_need_their_roles_and_the_page_needs_none(
    client: Callable[..., TestClient], tmp_path: Path, reviews: Path
) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text(f"review anna {REVIEWER}\ntag website {TAGGER}\n")
    asked = client(tokens=str(file))
    routes = [route for route in asked.app.openapi()["paths"] if route.startswith("/v1/review")]  # type: ignore[attr-defined]
    assert len(routes) == 6
    for route in routes:
        path = route.replace("{queue}", "news")
        method = "GET" if path.endswith(("queues", "stats")) else "POST"
        problem(asked.request(method, path, json={}), 401)
        problem(asked.request(method, path, json={}, headers=bearer(TAGGER)), 403)
    problem(asked.post("/v1/documents", params={"name": "a.txt"}, content=b"a"), 401)
    problem(asked.post("/v1/explain", json={"text": WORDS, "label": "label1"}), 401)
    for path in ("/", "/desk.js", "/dashboard.html"):
        assert asked.get(path).status_code == 200
    answer = asked.post("/v1/review/queues/news/next", json={"person": "bob"}, headers=bearer(REVIEWER))
    asked.post("/v1/review/queues/news/decisions", json=filing(answer.json()["item"]), headers=bearer(REVIEWER))
    with ReviewStore.open(reviews) as store:
        assert [row["person"] for row in log(store)] == ["anna"], "the name beside the token counts"
