"""Tokens and roles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import APIRouter, Depends
from starlette.testclient import TestClient

from longtail.errors import ConfigError
from longtail.serve.access import Access, Caller, requires
from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.settings import ServeSettings

from .conftest import ADMIN, REVIEWER, TAGGER, bearer, problem

OPEN = {("GET", "/healthz"), ("GET", "/readyz")}


def test_no_route_but_the_health_checks_answers_without_a_token(
    client: Callable[..., TestClient], models: Models, tokens: Path
) -> None:
    guarded = client(tokens=str(tokens))
    paths = create_app(models).openapi()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes |= {("GET", "/docs"), ("GET", "/docs.css"), ("GET", "/openapi.json")}
    assert len(routes) > 12
    for method, path in routes:
        answer = guarded.request(method, path.replace("{project_id}", "tiny"), json={} if method == "POST" else None)
        if (method, path) in OPEN:
            assert answer.status_code == 200
        else:
            problem(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"


def test_roles_decide_what_a_token_may_do(client: Callable[..., TestClient], tokens: Path) -> None:
    guarded = client(tokens=str(tokens))
    for token in (ADMIN, REVIEWER, TAGGER):
        assert guarded.post("/v1/tag", json={"texts": ["a"]}, headers=bearer(token)).status_code == 200
    assert guarded.post("/v1/model/reload", headers=bearer(ADMIN)).status_code == 200
    said = problem(guarded.post("/v1/model/reload", headers=bearer(REVIEWER)), 403)
    assert said == "the role 'admin' is needed, the token of 'anna' has not got it"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", f"Bearer {TAGGER}x", f"Bearer {TAGGER[:-1]}"]
)
def test_what_is_no_known_token_is_refused(client: Callable[..., TestClient], tokens: Path, header: str) -> None:
    answer = client(tokens=str(tokens)).get("/v1/model", headers={"Authorization": header})
    assert TAGGER not in problem(answer, 401)


def test_a_router_of_others_asks_for_roles(models: Models, tokens: Path) -> None:
    router = APIRouter()

    @router.get("/who")
    async def who(caller: Caller = Depends(requires("review"))) -> str:  # noqa: B008
        return caller.name

    with TestClient(create_app(models, ServeSettings(tokens=str(tokens)), routers=[router])) as client:
        assert client.get("/who", headers=bearer(REVIEWER)).json() == "anna"
        problem(client.get("/who", headers=bearer(TAGGER)), 403)
    with TestClient(create_app(models, routers=[router])) as client:
        assert client.get("/who").json() == ""


def test_tokens_may_be_kept_as_hashes_and_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"tag web sha256:{hashlib.sha256(TAGGER.encode()).hexdigest()}\n")
    access = Access(file)
    assert access.caller(f"bearer {TAGGER}".encode()).name == "web"
    file.write_text(f"tag,review other {TAGGER}\n")
    access.reload()
    assert access.caller(f"Bearer {TAGGER}".encode()) == Caller("other", frozenset({"tag", "review"}))
    file.write_text("tag other short\n")
    with pytest.raises(ConfigError):
        access.reload()
    assert access.caller(f"Bearer {TAGGER}".encode()).name == "other"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "must hold at least one token"),
        ("tag web\n", ":1: a line must be role, name and token, got 2 words"),
        ("\nreader web 0123456789abcdef\n", ":2: a role must be one of tag, review, admin, got 'reader'"),
        ("tag web 123\n", ":1: a token must have at least 16 characters, got 3"),
        ("tag web sha256:12\n", ":1: sha256: must be followed by 64 hexadecimal digits"),
        ("tag a 0123456789abcdef\ntag b 0123456789abcdef\n", ":2: tokens must be distinct"),
    ],
)
def test_a_file_that_holds_anything_else_is_refused_by_its_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "tokens").write_text(content)
    with pytest.raises(ConfigError) as error:
        Access(tmp_path / "tokens")
    assert said in str(error.value)
    assert "0123456789" not in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Access(tmp_path / "none")
