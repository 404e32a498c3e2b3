"""`POST /v1/explain`: which words of a text speak for a label, and the nearest training texts that carry it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request, Response

from longtail.serve.problems import Problem, responses
from longtail.serve.requests import Fields, decode, read_body, rows_of
from longtail.serve.schemas import json_body, json_response
from longtail.serve.service import Service

router = APIRouter(tags=["labels"])
_EXAMPLE = {"text": "a text editor for gnome", "label": "uitoolkit::gtk"}
_MOST_EXAMPLES = 20


class ExplainRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A text and a label."""

    label: Annotated[str, msgspec.Meta(description="The id or the name of a label.")]
    text: Annotated[str | None, msgspec.Meta(description="The text; or give `record`.")] = None
    record: Annotated[
        Fields | None, msgspec.Meta(description="A text with fields, such as `title` and `text`; others are ignored.")
    ] = None
    n_examples: Annotated[
        int, msgspec.Meta(ge=0, le=_MOST_EXAMPLES, description="Training texts, at most; the server must have them.")
    ] = 3
    model: Annotated[str | None, msgspec.Meta(description="The name of a model; by default the first.")] = None


class WordPlace(msgspec.Struct):
    """Where a word stands, in characters (code points) of a field."""

    field: str
    start: int
    end: int


class ExplainedWord(msgspec.Struct):
    """A word and what it says for the label (above 0) or against it."""

    word: str
    weight: float
    spans: list[WordPlace]


class LabelExplanation(msgspec.Struct):
    """Why a label fits a text."""

    label: str
    name: str
    score: Annotated[float | None, msgspec.Meta(description="null where the model does not propose the label.")]
    method: Annotated[str, msgspec.Meta(description="How the weights of words came about.")]
    note: Annotated[str, msgspec.Meta(description="How far to trust it.")]
    fields: Annotated[dict[str, str], msgspec.Meta(description="The text as it was read; places refer to it.")]
    words: list[ExplainedWord]
    levels: Annotated[list[Any], msgspec.Meta(description="Linear models: margin and bias of each level of the tree.")]
    names: Annotated[list[str], msgspec.Meta(description="Names of the label that the text contains.")]
    members: Annotated[list[Any], msgspec.Meta(description="Ensembles: the share of each member.")]
    nearest: Annotated[list[Any], msgspec.Meta(description="The most similar training texts that carry the label.")]


class ExplainResponse(msgspec.Struct):
    """Why a label fits a text, by which model."""

    explanation: LabelExplanation
    model: str
    revision: str


_DECODER = msgspec.json.Decoder(ExplainRequest)


@router.post(
    "/v1/explain",
    response_class=Response,
    responses={
        200: json_response(ExplainResponse, "Why the label fits."),
        **responses(400, 401, 403, 404, 408, 413, 422, 429, 503),
    },
    openapi_extra=json_body(ExplainRequest, _EXAMPLE),
)
async def explain(request: Request) -> Response:
    """Explain why a label fits a text."""
    service: Service = request.app.state.service
    service.access.check(request.scope, "tag")
    asked = decode(await read_body(request, service.settings), _DECODER)
    model = service.models.get(asked.model)
    if (asked.text is None) == (asked.record is None):
        raise Problem(422, f"either `text` or `record` must be given, got {'both' if asked.text else 'none'}")
    texts = None if asked.text is None else [asked.text]
    records = None if asked.record is None else [asked.record]
    [(columns, _, [row])] = rows_of(texts, records, model, service.settings)
    explanation = await service.explain(model, dict(zip(columns, row, strict=True)), asked.label, asked.n_examples)
    answer = {"explanation": explanation.to_dict(), "model": model.name, "revision": model.revision}
    return Response(msgspec.json.encode(answer), media_type="application/json")
