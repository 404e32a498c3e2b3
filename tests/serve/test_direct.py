"""Routes that are answered without the framework around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.testclient import TestClient

from longtail.errors import ConfigError
from longtail.serve.direct import Direct
from longtail.serve.problems import Problem, add_handlers

from .conftest import problem

router = APIRouter()


@router.post("/direct/{ignored}")
async def with_a_parameter(ignored: str) -> str:
    return ignored


@router.post("/direct")
async def direct(request: Request) -> Response:
    said = (await request.body()).decode()
    if said == "problem":
        raise Problem(429, "too many", {"Retry-After": "1"})
    if said == "library":
        raise ConfigError("k must be at least 1")
    if said == "fault":
        raise RuntimeError("a bug")
    return Response(said.upper())


@pytest.fixture
def app() -> TestClient:
    app = FastAPI()
    add_handlers(app)
    app.include_router(router)
    app.add_middleware(Direct, routes=router.routes)
    return TestClient(app, raise_server_exceptions=False)


def test_what_the_endpoint_returns_is_answered(app: TestClient) -> None:
    assert app.post("/direct", content=b"text").text == "TEXT"


def test_its_errors_are_answered_as_problems(app: TestClient) -> None:
    refused = app.post("/direct", content=b"problem")
    assert problem(refused, 429) == "too many"
    assert refused.headers["retry-after"] == "1"
    assert problem(app.post("/direct", content=b"library"), 422) == "k must be at least 1"
    assert problem(app.post("/direct", content=b"fault"), 500) == "the server failed; its log says why"


def test_other_methods_and_paths_are_left_to_the_framework(app: TestClient) -> None:
    assert "cannot be asked with GET" in problem(app.get("/direct"), 405)
    assert app.post("/direct/text").json() == "text"
    problem(app.post("/elsewhere"), 404)


def test_they_are_counted_by_their_path(client: Callable[..., TestClient]) -> None:
    one = client()
    one.post("/v1/tag", json={"texts": ["word1a"]})
    one.post("/v1/tag", json={"texts": []})
    page = one.get("/metrics").text
    assert 'longtail_requests_total{method="POST",path="/v1/tag",status="200"} 1.0' in page
    assert 'longtail_requests_total{method="POST",path="/v1/tag",status="422"} 1.0' in page
    assert 'longtail_request_seconds_count{path="/v1/tag"} 2.0' in page
