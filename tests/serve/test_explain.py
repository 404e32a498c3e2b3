"""`POST /v1/explain`: the library's explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from longtail.data.dataset import Dataset
from longtail.explain import ExampleTexts
from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.why import ExplainResponse

from .conftest import problem

TEXT = "word1a word1b noise3"


def test_it_answers_what_the_library_explains(client: Callable[..., TestClient], models: Models) -> None:
    answer = client().post("/v1/explain", json={"text": TEXT, "label": "word1a"})
    assert answer.status_code == 200, answer.text
    said = msgspec.json.decode(answer.content, type=ExplainResponse)
    wanted = models.default.method.explain({"text": TEXT}, "label1")
    assert answer.json()["explanation"] == msgspec.json.decode(msgspec.json.encode(wanted.to_dict()))
    assert (said.model, said.revision, said.explanation.label) == ("tiny", models.default.revision, "label1")
    assert said.explanation.words[0].word.startswith("word1")
    assert said.explanation.nearest == []


def test_records_are_explained_by_their_fields(client: Callable[..., TestClient]) -> None:
    record = {"title": "word2a", "text": "word1a", "year": 1999}
    answer = client().post("/v1/explain", json={"record": record, "label": "label2"}).json()
    assert answer["explanation"]["fields"] == {"text": "word1a", "title": "word2a"}


def test_training_texts_are_shown_where_the_server_has_them(tiny: Callable[..., Dataset], models: Models) -> None:
    examples = ExampleTexts.of(tiny(n_labels=12).train)
    with TestClient(create_app(models, examples=examples)) as client:
        answer = client.post("/v1/explain", json={"text": TEXT, "label": "label1", "n_examples": 2}).json()
        assert len(answer["explanation"]["nearest"]) == 2
        other = client.post("/v1/explain", json={"text": TEXT, "label": "label1", "model": "again"}).json()
        assert other["explanation"]["nearest"] == []


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"label": "label1"}, 422, "either `text` or `record` must be given, got none"),
        ({"label": "label1", "text": "a", "record": {"text": "a"}}, 422, "got both"),
        ({"text": "a"}, 422, "`label`"),
        ({"text": "a", "label": "lable1"}, 422, "label1"),
        ({"text": "a", "label": "label1", "n_examples": 1000}, 422, "n_examples"),
        ({"text": "a", "label": "label1", "model": "none"}, 404, "there is no model 'none'"),
        ({"text": "a" * 200, "label": "label1"}, 422, "at most 100 characters"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    client: Callable[..., TestClient], body: dict[str, Any], status: int, said: str
) -> None:
    assert said in problem(client(max_characters=100).post("/v1/explain", json=body), status)
