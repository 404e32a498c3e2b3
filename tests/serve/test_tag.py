"""`POST /v1/tag`: what the library suggests, and errors in its words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from longtail.data.dataset import Dataset
from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.settings import ServeSettings

from .conftest import problem, trained

TEXTS = ["word1a word1b noise3", "word2a word7c word7a", "nothing that was learned", ""]


def library(models: Models, texts: Any, k: int = 5, **asked: Any) -> list[list[tuple[str, str, float]]]:
    return [
        [(label.id, label.name, pytest.approx(label.score, rel=1e-6)) for label in labels]
        for labels in models.default.method.predict(texts, k, **asked)
    ]


def answered(answer: Any) -> list[list[tuple[str, str, float]]]:
    assert answer.status_code == 200, answer.text
    return [
        [(label["id"], label["name"], label["score"]) for label in one["labels"]] for one in answer.json()["results"]
    ]


def test_it_answers_what_the_library_suggests(client: Callable[..., TestClient], models: Models) -> None:
    asked: dict[str, Any]
    for asked in ({}, {"k": 2}, {"threshold": 0.3}, {"allow": ["label1", "word7a"]}, {"deny": ["odd/*"], "k": 3}):
        answer = client().post("/v1/tag", json={"texts": TEXTS, **asked})
        assert answered(answer) == library(models, TEXTS, **asked)
        assert answer.json()["model"] == "tiny"
        assert answer.json()["revision"] == models.default.revision
    first = answer.json()["results"][0]
    assert (first["route"], first["predicted_recall"], first["cut"]) == (None, None, False)
    assert first["labels"][0]["path"] == ["even"]


def test_records_are_read_by_their_fields_and_answered_in_their_order(
    client: Callable[..., TestClient], models: Models
) -> None:
    records = [
        {"text": "word1a word1b"},
        {"title": "word2a", "text": "word5a word5b", "year": 1999},
        {"title": None, "text": "word7c"},
        {"title": "word3b", "text": ""},
    ]
    alone = [library(models, [{k: v for k, v in record.items() if isinstance(v, str)}])[0] for record in records]
    assert answered(client().post("/v1/tag", json={"records": records})) == alone
    assert alone[1] != library(models, ["word5a word5b"])[0]


def test_calibrated_models_say_what_should_be_done_with_each_text(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    model = trained(tiny, n_texts=900)
    assert model.chain_.calibration is not None
    model.save(tmp_path / "m")
    texts = [*TEXTS, *(f"word{n}a word{n}b noise{n}" for n in range(12))]
    asked: dict[str, Any]
    with TestClient(create_app(Models.open({"m": tmp_path / "m"}))) as client:
        assert client.get("/v1/model").json()["models"][0]["calibrated"] is True
        for asked in (
            {},
            {"threshold": "auto"},
            {"min_precision": 0.5},
            {"min_recall": 0.5},
            {"threshold": 0.2, "k": 2},
        ):
            wanted = model.predict(texts, **asked)
            results = client.post("/v1/tag", json={"texts": texts, **asked}).json()["results"]
            assert [one["route"] for one in results] == wanted.routes
            assert [one["predicted_recall"] for one in results] == pytest.approx(wanted.predicted_recall, rel=1e-3)
            assert [[label["id"] for label in one["labels"]] for one in results] == [
                [label.id for label in row] for row in wanted
            ]
        assert len({one["route"] for one in results}) > 1
        said = problem(client.post("/v1/tag", json={"texts": ["a"], "threshold": 0.1, "min_recall": 0.5}), 422)
        assert "only one of `threshold`, `min_precision` and `min_recall` can be given" in said


def test_a_model_is_chosen_by_name(client: Callable[..., TestClient]) -> None:
    assert client().post("/v1/tag", json={"texts": ["a"], "model": "again"}).json()["model"] == "again"
    said = problem(client().post("/v1/tag", json={"texts": ["a"], "model": "agian"}), 404)
    assert said == "there is no model 'agian'; did you mean 'again'?; /v1/model lists all"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "the body must be JSON"),
        (b"{", 400, "the body must be JSON"),
        (b'{"texts": ["\xff"]}', 400, "the body must be JSON in UTF-8"),
        (b'{"texts": ' + b"[" * 1_850, 422, "Expected `str`, got `array`"),
        (b"[]", 422, "Expected `object`, got `array`"),
        (b"{}", 422, "either `texts` or `records` must be given, got none"),
        (b'{"texts": ["a"], "records": []}', 422, "got both"),
        (b'{"texts": []}', 422, "1 to 3 texts, got 0"),
        (b'{"texts": ["a", "b", "c", "d"]}', 422, "1 to 3 texts, got 4"),
        (b'{"texts": "a"}', 422, "Expected `array | null`, got `str` - at `$.texts`"),
        (b'{"texts": [7]}', 422, "at `$.texts[0]`"),
        (b'{"texts": ["a"], "kk": 5}', 422, "unknown field `kk`"),
        (b'{"texts": ["a"], "k": 0}', 422, "`int` >= 1"),
        (b'{"texts": ["a"], "k": 51}', 422, "k must be at most 50, got 51"),
        (b'{"texts": ["a"], "k": 1e400}', 422, "out of range"),
        (b'{"texts": ["a"], "k": ' + b"9" * 400 + b"}", 422, "`int` <= 1000000"),
        (b'{"texts": ["a"], "threshold": "auto"}', 422, "threshold 'auto' needs a model with calibrated scores"),
        (b'{"texts": ["a"], "threshold": "high"}', 422, "at `$.threshold`"),
        (b'{"texts": ["' + b"a" * 101 + b'"]}', 422, "texts[0] must have at most 100 characters, got 101"),
        (b'{"texts": ["a"], "allow": ["wrod1a"]}', 422, "`allow`: the model has no label 'wrod1a'; did you mean 'word"),
        (b'{"records": [{"title": "a"}]}', 422, "records[0] must have the field 'text', got 'title'"),
        (b'{"records": [{"text": 7}]}', 422, "records[0]: the field 'text' must be a text, got 7"),
        (b'{"texts": ["' + b"a" * 2000 + b'"]}', 413, "a body must have at most 1,900 bytes"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(
    client: Callable[..., TestClient], body: bytes, status: int, said: str
) -> None:
    one = client(max_texts=3, max_k=50, max_characters=100, max_body_bytes=1900)
    assert said in problem(one.post("/v1/tag", content=body), status)


def test_a_body_without_a_length_is_cut_off_where_it_is_too_long(client: Callable[..., TestClient]) -> None:
    sent = 0

    def endless() -> Any:
        nonlocal sent
        while sent < 100:
            sent += 1
            yield b"a" * 1000

    problem(client(max_body_bytes=5000).post("/v1/tag", content=endless()), 413)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["texts", "records", "k", "threshold", "allow", "deny", "model", "text"]), inner
            )
        ),
    )
)
def test_whatever_json_comes_is_answered_or_refused(client: Callable[..., TestClient], body: Any) -> None:
    answer = client().post("/v1/tag", content=json.dumps(body).encode())
    assert answer.status_code in {200, 404, 422}, answer.text


async def at_once(app: Any, bodies: list[dict[str, Any]]) -> list[Any]:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as one:
        return list(await asyncio.gather(*(one.post("/v1/tag", json=body) for body in bodies)))


def test_requests_beyond_the_limit_are_told_to_come_back(models: Models) -> None:
    app = create_app(models, ServeSettings(max_requests=2, batch_wait_s=0.2))
    answers = asyncio.run(at_once(app, [{"texts": ["word1a"]}] * 5))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "2 requests are worked on already" in problem(refused, 429)
    assert refused.headers["retry-after"] == "1"
    assert asyncio.run(at_once(app, [{"texts": ["word1a"]}]))[0].status_code == 200


def test_a_request_that_takes_too_long_is_given_up(models: Models) -> None:
    app = create_app(models, ServeSettings(timeout_s=0.05, batch_wait_s=30.0))
    [answer] = asyncio.run(at_once(app, [{"texts": ["word1a"]}]))
    assert "it took longer than 0.05 s" in problem(answer, 503)


def test_answers_do_not_depend_on_what_is_tagged_together(models: Models) -> None:
    bodies = [{"texts": [f"word{n % 12}a word{n % 7}b"], "k": 1 + n % 4} for n in range(60)]
    bodies += [{"texts": [f"word{n % 12}a"] * 3, "allow": ["even/*" if n % 2 else "odd/*"]} for n in range(40)]
    app = create_app(models)
    together = [answer.content for answer in asyncio.run(at_once(app, bodies))]
    alone = [asyncio.run(at_once(app, [body]))[0].content for body in bodies]
    assert together == alone
    metrics = app.state.service.metrics.page().decode()
    n_batches = float(metrics.split('longtail_batch_texts_count{model="tiny"} ')[1].split()[0])
    assert n_batches < 180  # 200 requests


def test_a_body_that_is_nested_too_deeply_is_refused(client: Callable[..., TestClient]) -> None:
    answer = client().post("/v1/tag", content=b'{"records": [{"a": ' + b"[" * 100_000)
    assert "not nested so deeply" in problem(answer, 400)
