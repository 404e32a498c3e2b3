"""The page for people, and the route that reads the documents they drop on it.

    create_app(models, settings, routers=[documents_router(), …], mounts={"/": page()})

The page is files alone: no build step, and nothing from elsewhere. It works without a review store too: then it shows
what a model suggests and why, and keeps nothing.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.staticfiles import StaticFiles

from longtail.review.documents import MAX_BYTES, read_apart
from longtail.serve.access import requires
from longtail.serve.problems import responses
from longtail.serve.requests import read_body
from longtail.serve.schemas import json_response
from longtail.serve.service import Service, service_of

_documents = APIRouter(tags=["documents"])


class DocumentFields(msgspec.Struct):
    """The text of a document."""

    fields: dict[str, str]


def page() -> StaticFiles:
    """Return the page, for the path `/`."""
    return StaticFiles(directory=str(files("longtail.review") / "static"), html=True)


def desk_routers(reviews: str | None) -> list[APIRouter]:
    """Return the routes that the page uses: documents, and the desk if there is a store; raise if it cannot be used."""
    if reviews is None:
        return [documents_router()]
    from longtail.review.store import ReviewStore

    ReviewStore.open(reviews).close()
    from longtail.review.router import review_router

    return [documents_router(), review_router(reviews)]


def documents_router() -> APIRouter:
    """Return the route that reads documents."""
    return _documents


@_documents.post(
    "/v1/documents",
    response_class=Response,
    dependencies=[Depends(requires("tag"))],
    responses={
        200: json_response(DocumentFields, "Title and text."),
        **responses(400, 401, 403, 408, 413, 422, 429),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def document(
    request: Request,
    service: Annotated[Service, Depends(service_of)],
    name: Annotated[str, Query(min_length=1, max_length=255, description="Its file name; the suffix tells its kind.")],
) -> Response:
    """Read the text of a PDF, Word, EPUB, HTML or plain text document."""
    with service.admitted():
        data = await read_body(request, service.settings.model_copy(update={"max_body_bytes": MAX_BYTES}))
        fields = await asyncio.to_thread(read_apart, name, data)
    return Response(msgspec.json.encode(DocumentFields(fields)), media_type="application/json")
