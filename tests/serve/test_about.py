"""Models, labels, health, numbers, the description, and what every answer has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from longtail.data.dataset import Dataset
from longtail.serve.app import create_app
from longtail.serve.models import Models

from .conftest import problem, trained


def test_models_are_described(client: Callable[..., TestClient], models: Models) -> None:
    said = client().get("/v1/model").json()
    assert [model["name"] for model in said["models"]] == ["tiny", "again"]
    assert said["default"] == "tiny"
    first = said["models"][0]
    assert (first["method"], first["n_labels"], first["fields"], first["optional_fields"]) == (
        "linear", 12, ["text"], ["title"],
    )  # fmt: skip
    assert first["revision"] == models.default.revision


def test_labels_are_found_by_any_name(client: Callable[..., TestClient]) -> None:
    [label, *_] = client().get("/v1/labels", params={"q": "WORD7B"}).json()["labels"]
    assert label["id"] == "label7"
    assert (label["name"], label["matched"], label["path"], label["similarity"]) == ("word7a", "word7b", ["odd"], 1.0)
    assert len(client().get("/v1/labels", params={"q": "word", "limit": 3}).json()["labels"]) == 3
    for query in ({}, {"q": ""}, {"q": "a", "limit": 0}, {"q": "a", "limit": 10**9}, {"q": "a" * 300}):
        problem(client().get("/v1/labels", params=query), 422)
    problem(client().get("/v1/labels", params={"q": "a", "model": "other"}), 404)


def test_a_model_that_was_replaced_is_opened_again(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    trained(tiny).save(tmp_path / "m")
    models = Models.open({"m": tmp_path / "m"})
    with TestClient(create_app(models)) as client:
        assert client.post("/v1/model/reload").json()["reloaded"] == []
        before = client.post("/v1/tag", json={"texts": ["word1a"]}).json()
        trained(tiny, seed=1).save(tmp_path / "m")
        assert client.post("/v1/tag", json={"texts": ["word1a"]}).json() == before
        assert client.post("/v1/model/reload", json={"model": "m"}).json()["reloaded"] == ["m"]
        after = client.post("/v1/tag", json={"texts": ["word1a"]}).json()
        assert after["revision"] != before["revision"]
        problem(client.post("/v1/model/reload", json={"model": "x"}), 404)
        (tmp_path / "m" / "manifest.json").write_text("{}")
        assert "save the model again" in problem(client.post("/v1/model/reload"), 409)
        assert client.post("/v1/tag", json={"texts": ["word1a"]}).json() == after


def test_health_and_numbers(client: Callable[..., TestClient]) -> None:
    one = client()
    assert one.get("/healthz").json() == {"status": "ok"}
    assert one.get("/readyz").json() == {"status": "ready"}
    one.post("/v1/tag", json={"texts": ["a", "b"]})
    one.post("/v1/tag", content=b"x")
    one.get("/made/up/path")
    numbers = one.get("/metrics").text
    assert 'longtail_texts_total{model="tiny"} 2.0' in numbers
    assert 'longtail_requests_total{method="POST",path="/v1/tag",status="400"} 1.0' in numbers
    assert 'path="other",status="404"} 1.0' in numbers
    assert "made" not in numbers
    one.app.state.service.is_stopping = True  # type: ignore[attr-defined]
    problem(one.get("/readyz"), 503)


@pytest.mark.parametrize("path", ["/healthz", "/docs", "/nowhere", "/v1/tag"])
def test_every_answer_has_security_headers_and_none_that_lets_other_sites_in(
    client: Callable[..., TestClient], path: str
) -> None:
    answer = client().get(path, headers={"Origin": "https://elsewhere.example"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_pages_of_other_sites_can_change_nothing(client: Callable[..., TestClient]) -> None:
    problem(client().post("/v1/model/reload", headers={"Origin": "https://elsewhere.example"}), 403)
    assert client().post("/v1/model/reload", headers={"Origin": "http://testserver"}).status_code == 200
    problem(client().options("/v1/tag", headers={"Origin": "https://elsewhere.example"}), 405)


def test_a_server_on_a_loopback_address_answers_to_local_names_only(client: Callable[..., TestClient]) -> None:
    local = client(local_only=True)
    problem(local.get("/healthz"), 403)
    for host, status in {
        "localhost": 200,
        "127.0.0.1:8000": 200,
        "[::1]:80": 200,
        "localhost.example": 403,
        "": 403,
    }.items():
        assert local.get("/healthz", headers={"Host": host}).status_code == status


def test_paths_and_methods_that_are_not_there_are_problems(client: Callable[..., TestClient]) -> None:
    assert problem(client().get("/v2"), 404) == "there is nothing at /v2; /docs lists what there is"
    assert problem(client().get("/v1/tag"), 405) == "/v1/tag cannot be asked with GET; /docs says how"


def test_the_description_names_every_route_and_needs_nothing_from_elsewhere(client: Callable[..., TestClient]) -> None:
    described = client().get("/openapi.json").json()
    assert {"/v1/tag", "/v1/labels", "/v1/model", "/v1/model/reload", "/v1/projects/{project_id}/suggest"} <= set(
        described["paths"]
    )
    tag = described["paths"]["/v1/tag"]["post"]
    body = tag["requestBody"]["content"]["application/json"]["schema"]
    filters = {"threshold", "min_precision", "min_recall", "allow", "deny"}
    assert {"texts", "records", "k", "model", *filters} == set(body["properties"])
    assert {"200", "400", "413", "422", "429", "503"} <= set(tag["responses"])
    page = client().get("/docs").text
    assert all(path in page for path in described["paths"])
    assert not re.search(r"<(?:script|img|iframe)|(?:src|href)=[\"']?(?:https?:)?//|style=", page)
    assert "font" in client().get("/docs.css").text
