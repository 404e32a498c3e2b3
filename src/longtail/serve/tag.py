"""`POST /v1/tag`: the route that must be fast. It decodes and encodes by itself; its schema is declared."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from longtail.serve.batching import TextLabels
from longtail.serve.models import ServedModel
from longtail.serve.problems import responses
from longtail.serve.requests import TagRequest, TagResponse, check_k, decode, read_body, rows_of
from longtail.serve.schemas import json_body, json_response
from longtail.serve.service import Service

router = APIRouter(tags=["labels"])
_DECODER = msgspec.json.Decoder(TagRequest)
_JSON = "application/json"
_EXAMPLE = {"texts": ["a text editor for gnome"], "k": 3}


@router.post(
    "/v1/tag",
    response_class=Response,
    responses={
        200: json_response(TagResponse, "The labels of each text."),
        **responses(400, 401, 403, 404, 408, 413, 422, 429, 503),
    },
    openapi_extra=json_body(TagRequest, _EXAMPLE),
)
async def tag(request: Request) -> Response:
    """Suggest labels for texts."""
    service: Service = request.app.state.service
    service.access.check(request.scope, "tag")
    asked = decode(await read_body(request, service.settings), _DECODER)
    model = service.models.get(asked.model)
    check_k(asked.k, service.settings)
    groups = rows_of(asked.texts, asked.records, model, service.settings)
    answers = await service.tag(
        model,
        groups,
        k=asked.k,
        threshold=asked.threshold,
        min_precision=asked.min_precision,
        min_recall=asked.min_recall,
        allow=asked.allow,
        deny=asked.deny,
    )
    return Response(answer_json(answers, model), media_type=_JSON)


def answer_json(answers: list[TextLabels], model: ServedModel) -> bytes:
    """Return a `TagResponse` as JSON."""
    results: list[bytes] = []
    for answer in answers:
        recall, route = b"null", b"null"
        if answer.predicted_recall is not None and answer.route is not None:
            recall, route = b"%.4g" % answer.predicted_recall, b'"%s"' % answer.route.encode()
        labels = model.labels.suggestions(answer.labels, answer.scores)
        cut = b"true" if answer.cut else b"false"
        results.append(b'{"labels":%s,"predicted_recall":%s,"route":%s,"cut":%s}' % (labels, recall, route, cut))
    names: tuple[Any, ...] = (b",".join(results), model.name.encode(), model.revision.encode())
    return b'{"results":[%s],"model":"%s","revision":"%s"}' % names
