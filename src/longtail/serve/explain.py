"""`POST /v1/explain`: why a model gives a text a label.

{"text": "a text editor for gnome", "label": "uitoolkit::gtk"}     or {"record": {"title": "…", "text": "…"}, …}
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from longtail.serve.access import requires
from longtail.serve.problems import Problem, responses
from longtail.serve.requests import decode, read_body, rows_of
from longtail.serve.schemas import json_body
from longtail.serve.service import Service, service_of

router = APIRouter(tags=["labels"])
_JSON = "application/json"
_EXAMPLE = {"text": "a text editor for gnome", "label": "uitoolkit::gtk"}


class ExplainRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A text and a label of it."""

    label: Annotated[str, msgspec.Meta(min_length=1, max_length=1000, description="Its id or its name.")]
    text: Annotated[str | None, msgspec.Meta(description="The text; or give a `record`.")] = None
    record: Annotated[
        dict[str, Any] | None,
        msgspec.Meta(description="A text with fields; those that the model does not read are ignored."),
    ] = None
    model: Annotated[str | None, msgspec.Meta(description="The name of a model; by default the first.")] = None


_DECODER = msgspec.json.Decoder(ExplainRequest)


@router.post(
    "/v1/explain",
    response_class=Response,
    dependencies=[Depends(requires("tag"))],
    responses={
        200: {"description": "Words that speak for and against the label, and similar texts.", "content": {_JSON: {}}},
        **responses(400, 401, 403, 404, 408, 413, 422, 429, 503),
    },
    openapi_extra=json_body(ExplainRequest, _EXAMPLE),
)
async def explain(request: Request, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Say why a text has a label."""
    asked = decode(await read_body(request, service.settings), _DECODER)
    model = service.models.get(asked.model)
    record = None if asked.record is None else dict.fromkeys(model.method.columns, "") | asked.record
    texts, records = None if asked.text is None else [asked.text], None if record is None else [record]
    [(columns, _, [fields])] = rows_of(texts, records, model, service.settings)
    text = dict(zip(columns, fields, strict=True))
    with service.admitted():
        try:
            async with asyncio.timeout(service.settings.timeout_s):
                explanation = await asyncio.to_thread(model.method.explain, text, asked.label, run=service.models.run)
        except TimeoutError:
            took = f"explaining took longer than {service.settings.timeout_s:g} s"
            raise Problem(503, f"{took}; explain a shorter text") from None
    return Response(msgspec.json.encode(explanation.to_dict()), media_type=_JSON)
