"""Errors as `application/problem+json` (RFC 9457), with the library's own words.

raise Problem(404, "there is no model 'books'")
LongtailError  ->  422 with its text
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from longtail.errors import LongtailError

MEDIA_TYPE = "application/problem+json"
LOG = logging.getLogger("longtail.serve")
_LONGEST_DETAIL = 2000
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""As RFC 9110 calls them; Python's names differ between its versions."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["about:blank"]},
        "title": {"type": "string", "examples": ["Unprocessable Content"]},
        "status": {"type": "integer", "examples": [422]},
        "detail": {"type": "string", "description": "What must hold, what came, and the next step."},
    },
}
"""The JSON schema of a problem."""


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers

    def response(self) -> Response:
        """Return it as a response."""
        return problem_response(self.status, self.detail, self.headers)


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a problem."""
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    shown = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]} …"
    content = msgspec.json.encode(
        {"type": "about:blank", "title": title, "status": status, "detail": shown.encode(errors="replace").decode()}
    )
    return Response(content, status, dict(headers or {}), MEDIA_TYPE)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the declaration of problems for the OpenAPI description of a route."""
    about = {
        400: "The request cannot be read.",
        401: "A bearer token is needed.",
        403: "The token has not the role.",
        404: "There is no such thing.",
        408: "The body did not arrive in time.",
        409: "The model's folder cannot be used; the model stays as it is.",
        413: "The body is too long.",
        422: "The request cannot be used.",
        429: "Too many requests at once.",
        503: "It took too long.",
    }
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    return {status: {"description": about[status], "content": content} for status in statuses}


def add_handlers(app: FastAPI) -> None:
    """Let all errors of an application be answered as problems."""
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(LongtailError, _of_library)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(Exception, _of_fault)


async def _of_problem(request: Request, error: Exception) -> Response:
    return error.response() if isinstance(error, Problem) else problem_response(500, str(error))


async def _of_library(request: Request, error: Exception) -> Response:
    return problem_response(422, str(error))


async def _of_http(request: Request, error: Exception) -> Response:
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    detail = str(getattr(error, "detail", ""))
    if status == 404 and detail == HTTPStatus(404).phrase:
        detail = f"there is nothing at {request.url.path}; /docs lists what there is"
    elif status == 405:
        detail = f"{request.url.path} cannot be asked with {request.method}; /docs says how"
    return problem_response(status, detail, headers)


async def _of_validation(request: Request, error: Exception) -> Response:
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    places = (".".join(map(str, fault["loc"])) + f": {fault['msg']}" for fault in faults)
    return problem_response(422, "; ".join(places) or "the request cannot be used")


async def _of_fault(request: Request, error: Exception) -> Response:
    LOG.error("%s %s failed: %r", request.method, request.url.path, error)
    return problem_response(500, "the server failed; its log says why")
