"""The paths of Annif's interface, asked as its client does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from longtail.serve.models import Models

from .conftest import problem


def test_models_are_projects(client: Callable[..., TestClient]) -> None:
    assert "Annif" in client().get("/v1/").json()["title"]
    [first, second] = client().get("/v1/projects").json()["projects"]
    assert (first["project_id"], second["project_id"]) == ("tiny", "again")
    assert client().get("/v1/projects/tiny").json() == first
    assert first["backend"]["backend_id"] == "longtail-linear"
    assert "there is no model 'none'" in problem(client().get("/v1/projects/none"), 404)


def test_a_form_is_answered_with_uris(client: Callable[..., TestClient], models: Models) -> None:
    text = "word1a word1b & 50 % = ü"
    answer = client().post("/v1/projects/tiny/suggest", data={"text": text, "limit": 3}).json()
    [wanted] = models.default.method.predict([text], 3)
    assert [(one["uri"], one["label"]) for one in answer["results"]] == [(one.id, one.name) for one in wanted]
    assert answer["results"][0]["notation"] is None
    high = client().post("/v1/projects/tiny/suggest", data={"text": text, "threshold": 0.5}).json()["results"]
    assert high
    assert all(one["score"] >= 0.5 for one in high)
    assert client().post("/v1/projects/tiny/suggest", data={"text": text, "limit": 0}).json() == {"results": []}


def test_documents_are_answered_in_their_order(client: Callable[..., TestClient]) -> None:
    documents = [{"text": "word1a", "document_id": "one"}, {"text": "word2a"}]
    answer = client().post("/v1/projects/tiny/suggest-batch", json={"documents": documents}, params={"limit": 1}).json()
    assert [one["document_id"] for one in answer] == ["one", None]
    assert [one["results"][0]["uri"] for one in answer] == ["label1", "label2"]
    assert client().post("/v1/projects/tiny/suggest-batch", json={"documents": []}).json() == []


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "the form must have a field 'text'"),
        ({"text": "a", "limit": "many"}, "limit must be a whole number from 0, got 'many'"),
        ({"text": "a", "limit": "-1"}, "limit must be"),
        ({"text": "a", "threshold": "2"}, "threshold must be a number from 0 to 1, got '2'"),
        ({"text": "a", "threshold": "nan"}, "threshold must be"),
    ],
)
def test_forms_that_cannot_be_used_are_refused(
    client: Callable[..., TestClient], form: dict[str, Any], said: str
) -> None:
    assert said in problem(client().post("/v1/projects/tiny/suggest", data=form), 400)


def test_what_else_cannot_be_used_is_refused(client: Callable[..., TestClient]) -> None:
    one = client()
    problem(one.post("/v1/projects/tiny/suggest", content=b"text=%ff"), 400)
    problem(one.post("/v1/projects/tiny/suggest", content=b"text=\xff"), 400)
    problem(one.post("/v1/projects/none/suggest", data={"text": "a"}), 404)
    problem(one.post("/v1/projects/tiny/suggest-batch", json={"documents": [{"text": "a"}] * 33}), 422)
    problem(one.post("/v1/projects/tiny/suggest-batch?limit=-1", json={"documents": []}), 422)
