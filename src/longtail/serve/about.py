"""What can be asked of a server beside labels of texts: its models, their labels, its health, its numbers."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from longtail.errors import LongtailError
from longtail.serve.access import requires
from longtail.serve.problems import Problem, problem_response, responses
from longtail.serve.requests import decode, read_body
from longtail.serve.schemas import json_body, json_response
from longtail.serve.service import Service, service_of

SUPERVISOR = "LONGTAIL_SERVE_SUPERVISOR"
"""In workers: the process that started them, which passes a SIGHUP on to all."""
_JSON = "application/json"
_MOST_LABELS = 100

router = APIRouter()
AnyService = Annotated[Service, Depends(service_of)]


class FoundLabel(msgspec.Struct):
    """A label that fits a query."""

    id: str
    name: str
    path: list[str]
    matched: Annotated[str, msgspec.Meta(description="The name that fits: the label's, or another one of it.")]
    similarity: Annotated[float, msgspec.Meta(description="1 where the name holds the query.")]
    n_train_texts: int
    state: Annotated[str, msgspec.Meta(description="retired, or merged into 'ID'; empty for a label in use.")] = ""


class FoundLabels(msgspec.Struct):
    """Labels that fit a query, best first."""

    labels: list[FoundLabel]
    model: str


class ModelFacts(msgspec.Struct):
    """A model."""

    name: str
    method: str
    revision: str
    opened: str
    n_labels: int
    n_labels_scored: int
    n_train_texts: int
    trained_on: str | None
    fields: Annotated[list[str], msgspec.Meta(description="Fields that records must have.")]
    optional_fields: Annotated[list[str], msgspec.Meta(description="Fields that are read where records have them.")]
    calibrated: Annotated[bool, msgspec.Meta(description="Whether scores are probabilities.")]


class ModelList(msgspec.Struct):
    """All models; requests that name none are answered by `default`."""

    models: list[ModelFacts]
    default: str


class ReloadRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which model is opened again."""

    model: Annotated[str | None, msgspec.Meta(description="Its name; by default all.")] = None


class Reloaded(msgspec.Struct):
    """What was opened again."""

    reloaded: Annotated[list[str], msgspec.Meta(description="Names of models whose folders had been replaced.")]
    models: list[ModelFacts]


@router.get(
    "/v1/labels",
    tags=["labels"],
    dependencies=[Depends(requires("tag"))],
    response_class=Response,
    responses={200: json_response(FoundLabels, "Labels that fit, best first."), **responses(401, 403, 404, 422)},
)
def labels(
    service: AnyService,
    q: Annotated[str, Query(min_length=1, max_length=200, description="A name, or the beginning of one.")],
    limit: Annotated[int, Query(ge=1, le=_MOST_LABELS)] = 20,
    model: Annotated[str | None, Query(description="The name of a model; by default the first.")] = None,
    in_use: Annotated[bool, Query(description="false: also labels that were retired or merged.")] = True,
) -> Response:
    """Find labels by any of their names: by its beginning, or by what looks like it."""
    served = service.models.get(model)
    vocabulary, state = served.method.vocabulary_, served.method.chain_.edited.state
    unused = served.method.chain_.edited.n_unused if in_use else 0
    matches = [
        FoundLabel(
            id=row["id"],
            name=row["name"],
            path=vocabulary.path(match.label),
            matched=match.name,
            similarity=round(match.similarity, 3),
            n_train_texts=int(served.method.train_counts_[match.label]),
            state=state(row["id"]),
        )
        for match in served.search.find(q, limit + unused)
        for row in vocabulary.table.slice(match.label, 1).select(["id", "name"]).to_pylist()
        if not (in_use and state(row["id"]))
    ]
    return _json(FoundLabels(matches[:limit], served.name))


@router.get(
    "/v1/model",
    tags=["models"],
    dependencies=[Depends(requires("tag"))],
    response_class=Response,
    responses={200: json_response(ModelList, "All models."), **responses(401, 403)},
)
async def models(service: AnyService) -> Response:
    """Describe the models."""
    return _json(ModelList([_facts(model.facts()) for model in service.models], service.models.default.name))


@router.post(
    "/v1/model/reload",
    tags=["models"],
    dependencies=[Depends(requires("admin"))],
    response_class=Response,
    responses={200: json_response(Reloaded, "What was opened again."), **responses(400, 401, 403, 404, 409, 413, 422)},
    openapi_extra=json_body(ReloadRequest, {})
    | {"requestBody": {**json_body(ReloadRequest, {})["requestBody"], "required": False}},
)
async def reload(request: Request, service: AnyService) -> Response:
    """Open models again whose folders were replaced; requests meanwhile are answered by the old ones.

    Other workers of the same server follow within seconds.
    """
    body = await read_body(request, service.settings)
    asked = decode(body, _RELOAD) if body else ReloadRequest()
    if asked.model is not None:
        service.models.get(asked.model)
    try:
        new = await service.reload(asked.model)
    except LongtailError as error:
        raise Problem(409, str(error)) from error
    if new:
        tell_other_workers()
    return _json(Reloaded([model.name for model in new], [_facts(model.facts()) for model in service.models]))


_RELOAD = msgspec.json.Decoder(ReloadRequest)


def tell_other_workers() -> None:
    """Let all workers of this server open models again whose folders have changed."""
    if SUPERVISOR in os.environ:
        os.kill(int(os.environ[SUPERVISOR]), signal.SIGHUP)


@router.get("/healthz", tags=["health"])
async def healthz() -> dict[str, str]:
    """Say that the process lives."""
    return {"status": "ok"}


@router.get("/readyz", tags=["health"], responses=responses(503))
async def readyz(service: AnyService) -> Response:
    """Say whether requests are taken."""
    if service.is_stopping:
        return problem_response(503, "the server stops")
    return Response(b'{"status":"ready"}', media_type=_JSON)


@router.get(
    "/metrics",
    tags=["health"],
    dependencies=[Depends(requires("tag"))],
    response_class=Response,
    responses={200: {"description": "Numbers for Prometheus.", "content": {"text/plain": {}}}, **responses(401, 403)},
)
def metrics(service: AnyService) -> Response:
    """Return numbers for Prometheus."""
    return Response(service.metrics.page(), media_type=CONTENT_TYPE_LATEST)


def _facts(facts: dict[str, object]) -> ModelFacts:
    return msgspec.convert(facts, ModelFacts)


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), media_type=_JSON)
