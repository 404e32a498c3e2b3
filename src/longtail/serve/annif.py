"""The paths of Annif's REST interface for suggestions, so that its clients work unchanged: every model is a project.

GET  /v1/projects, /v1/projects/{id}          POST /v1/projects/{id}/suggest         (a form)
GET  /v1/                                     POST /v1/projects/{id}/suggest-batch   (JSON)
"""

from __future__ import annotations

import urllib.parse
from importlib.metadata import version
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from longtail.serve.access import requires
from longtail.serve.models import ServedModel
from longtail.serve.problems import Problem, responses
from longtail.serve.requests import check_k, decode, read_body, rows_of
from longtail.serve.schemas import json_body, json_response
from longtail.serve.service import Service, service_of

_JSON = "application/json"
_TAG = [Depends(requires("tag"))]
_MOST_DOCUMENTS = 32
router = APIRouter(prefix="/v1", tags=["as Annif"])
AnyService = Annotated[Service, Depends(service_of)]


class Backend(msgspec.Struct):
    """What a project is made with."""

    backend_id: str


class Project(msgspec.Struct):
    """A model."""

    project_id: str
    name: str
    language: str
    backend: Backend
    is_trained: bool
    modification_time: str


class Projects(msgspec.Struct):
    """All models."""

    projects: list[Project]


class AnnifSuggestion(msgspec.Struct):
    """A suggested label."""

    uri: str
    label: str
    notation: str | None
    score: float


class AnnifSuggestions(msgspec.Struct):
    """The labels of a text."""

    results: list[AnnifSuggestion]


class Document(msgspec.Struct):
    """A text."""

    text: str
    document_id: str | None = None


class Documents(msgspec.Struct):
    """Texts."""

    documents: Annotated[list[Document], msgspec.Meta(max_length=_MOST_DOCUMENTS)]


class DocumentSuggestions(msgspec.Struct):
    """The labels of a text of several."""

    results: list[AnnifSuggestion]
    document_id: str | None


_DOCUMENTS = msgspec.json.Decoder(Documents)
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string"},
                        "limit": {"type": "integer", "default": 10, "minimum": 0},
                        "threshold": {"type": "number", "default": 0.0, "minimum": 0.0, "maximum": 1.0},
                        "language": {"type": "string", "description": "Ignored: labels have one language."},
                    },
                }
            }
        },
    }
}


@router.get(
    "/",
    dependencies=_TAG,
    responses=responses(401, 403),
)
async def info() -> dict[str, str]:
    """Say what answers here."""
    return {"title": "longtail, with the paths of the Annif REST API", "version": version("longtail")}


@router.get(
    "/projects",
    dependencies=_TAG,
    response_class=Response,
    responses={200: json_response(Projects, "All models."), **responses(401, 403)},
)
async def projects(service: AnyService) -> Response:
    """List the models as projects."""
    return _json(Projects([_project(model) for model in service.models]))


@router.get(
    "/projects/{project_id}",
    dependencies=_TAG,
    response_class=Response,
    responses={200: json_response(Project, "A model."), **responses(401, 403, 404)},
)
async def project(service: AnyService, project_id: str) -> Response:
    """Describe a model as a project."""
    return _json(_project(service.models.get(project_id)))


@router.post(
    "/projects/{project_id}/suggest",
    response_class=Response,
    responses={
        200: json_response(AnnifSuggestions, "The labels."),
        **responses(400, 401, 403, 404, 408, 413, 422, 429, 503),
    },
    openapi_extra=_FORM,
)
async def suggest(request: Request, project_id: str) -> Response:
    """Suggest labels for a text."""
    service: Service = request.app.state.service
    service.access.check(request.scope, "tag")
    model = service.models.get(project_id)
    form = _form_of(await read_body(request, service.settings))
    if "text" not in form:
        raise Problem(400, "the form must have a field 'text'")
    limit = _number("limit", form.get("limit", "10"), int)
    threshold = _number("threshold", form.get("threshold", "0"), float)
    [results] = await _suggest(service, model, [form["text"]], limit, threshold)
    return Response(b'{"results":%s}' % results, media_type=_JSON)


@router.post(
    "/projects/{project_id}/suggest-batch",
    response_class=Response,
    responses={
        200: json_response(list[DocumentSuggestions], "The labels of each text."),
        **responses(400, 401, 403, 404, 408, 413, 422, 429, 503),
    },
    openapi_extra=json_body(Documents),
)
async def suggest_batch(
    request: Request,
    project_id: str,
    limit: Annotated[int, Query(ge=0)] = 10,
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.0,
    language: Annotated[str | None, Query(description="Ignored: labels have one language.")] = None,
) -> Response:
    """Suggest labels for up to 32 texts."""
    service: Service = request.app.state.service
    service.access.check(request.scope, "tag")
    model = service.models.get(project_id)
    documents = decode(await read_body(request, service.settings), _DOCUMENTS).documents
    results = await _suggest(service, model, [document.text for document in documents], limit, threshold)
    answers = [
        b'{"results":%s,"document_id":%s}' % (labels, msgspec.json.encode(document.document_id))
        for labels, document in zip(results, documents, strict=True)
    ]
    return Response(b"[%s]" % b",".join(answers), media_type=_JSON)


async def _suggest(service: Service, model: ServedModel, texts: list[str], limit: int, threshold: float) -> list[bytes]:
    """Return the labels of texts as JSON."""
    check_k(limit, service.settings)
    if not texts or limit == 0:
        return [b"[]"] * len(texts)
    groups = rows_of(texts, None, model, service.settings)
    answers = await service.tag(model, groups, k=limit, threshold=threshold or None)
    return [model.labels.annif_suggestions(answer.labels, answer.scores) for answer in answers]


def _project(model: ServedModel) -> Project:
    opened = model.opened.isoformat(timespec="seconds")
    return Project(model.name, model.name, "und", Backend(f"longtail-{model.method.name}"), True, opened)


def _form_of(body: bytes) -> dict[str, str]:
    try:
        pairs = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise Problem(400, f"the body must be a form in UTF-8 (application/x-www-form-urlencoded): {error}") from None
    return dict(pairs)


def _number(name: str, text: str, kind: Any) -> Any:
    try:
        number = kind(text) if len(text) < 30 else -1
    except ValueError:
        number = -1
    if not 0 <= number <= (1 if kind is float else 1 << 31):
        wanted = "a number from 0 to 1" if kind is float else "a whole number from 0"
        raise Problem(400, f"{name} must be {wanted}, got '{text:.40}'")
    return number


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), media_type=_JSON)
