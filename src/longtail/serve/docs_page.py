"""The description of all routes: `/openapi.json` for programs, `/docs` as a page without scripts and outside files."""

from __future__ import annotations

import html
import json
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse

from longtail.serve.access import requires

router = APIRouter(dependencies=[Depends(requires("tag"))], include_in_schema=False)
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
section { border-top: 1px solid #8886; padding: .5rem 0 1rem; }
h2 code { font-weight: normal; } .method { display: inline-block; min-width: 4rem; font-weight: bold; }
pre { overflow-x: auto; padding: .75rem; background: #8881; border-radius: .3rem; }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: .15rem .8rem .15rem 0; }
"""
_JSON = "application/json"


@router.get("/openapi.json")
def openapi(request: Request) -> Response:
    """Return the OpenAPI description."""
    return Response(json.dumps(request.app.openapi(), ensure_ascii=False), media_type=_JSON)


@router.get("/docs")
def docs(request: Request) -> Response:
    """Return the description as a page."""
    return HTMLResponse(page(request.app.openapi(), str(request.base_url).rstrip("/")))


@router.get("/docs.css")
def style() -> Response:
    """Return the style of the page."""
    return Response(_STYLE, media_type="text/css")


def page(description: dict[str, Any], base_url: str) -> str:
    """Return an OpenAPI description as HTML."""
    info = description["info"]
    sections = [
        _section(path, method, operation, base_url)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(info['title'])}: HTTP interface</title><link rel=stylesheet href=docs.css>"
        f"<main><h1>{html.escape(info['title'])} {html.escape(info['version'])}</h1>"
        f"<p>{html.escape(info['description'])} The same for programs: <a href=openapi.json>openapi.json</a>.</p>"
        + "".join(sections)
        + "</main></html>"
    )


def _section(path: str, method: str, operation: dict[str, Any], base_url: str) -> str:
    """Return what is said of one route."""
    rows = [
        (f"{parameter['name']}", parameter["in"], parameter.get("description", ""))
        for parameter in operation.get("parameters", ())
    ]
    contents: dict[str, Any] = operation.get("requestBody", {}).get("content", {})
    media = next(iter(contents), "")
    body: dict[str, Any] = contents.get(media, {})
    rows += [
        (name, "form" if "form" in media else "body", field.get("description", ""))
        for name, field in body.get("schema", {}).get("properties", {}).items()
    ]
    fields = "".join(
        f"<tr><th scope=row><code>{html.escape(name)}</code><td>{place}<td>{html.escape(about)}"
        for name, place, about in rows
    )
    answers = "".join(
        f"<tr><th scope=row>{status}<td>{html.escape(answer.get('description', ''))}"
        for status, answer in operation["responses"].items()
    )
    command = _command(path, method, media, body, base_url)
    title = f"<span class=method>{method.upper()}</span> <code>{html.escape(path)}</code>"
    about = html.escape(operation.get("description") or operation.get("summary", ""))
    return (
        f"<section><h2>{title}</h2><p>{about}</p><pre>{html.escape(command)}</pre>"
        + (f"<h3>Takes</h3><table>{fields}</table>" if fields else "")
        + f"<h3>Answers</h3><table>{answers}</table></section>"
    )


def _command(path: str, method: str, media: str, body: dict[str, Any], base_url: str) -> str:
    """Return a curl command that asks the route."""
    words = ["curl"]
    if media == _JSON:
        words += [f"--json '{json.dumps(body.get('example', {}), ensure_ascii=False)}'"]
    elif media:
        words += ["--data-urlencode 'text=a text editor for gnome'"]
    elif method != "get":
        words += [f"-X {method.upper()}"]
    return " ".join([*words, f"{base_url}{path}"])
