"""The review desk over HTTP: claim the next text with suggestions, decide, skip, undo, add and find texts, see figures.

    create_app(models, settings, routers=[review_router("reviews.db")])

All routes need the role `review`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response

from longtail.errors import DataError
from longtail.review.adding import Queue, make_queue, queues
from longtail.review.desk import ClaimedText, Decision, Shown, claim, claim_new_text, decide, undo
from longtail.review.finding import find_texts
from longtail.review.history import label_names
from longtail.review.messages import (
    Acknowledged,
    Desk,
    Filing,
    FoundTexts,
    Item,
    NewText,
    NextRequest,
    QueueFacts,
    QueueList,
    TextOfQueue,
    UndoRequest,
)
from longtail.review.statistics import figures, progress
from longtail.review.store import ReviewStore
from longtail.review.suggesting import item_for, shown_to_nobody
from longtail.serve.access import Caller, requires
from longtail.serve.problems import Problem, responses
from longtail.serve.requests import decode, read_body
from longtail.serve.schemas import json_body, json_response
from longtail.serve.service import Service, service_of

T = TypeVar("T")
_JSON = "application/json"
AnyService = Annotated[Service, Depends(service_of)]
Reviewer = Annotated[Caller, Depends(requires("review"))]
_FAULTS = responses(400, 401, 403, 404, 408, 413, 422, 429, 503)

_review = APIRouter(prefix="/v1/review", tags=["review"])


def review_router(address: str | Path) -> APIRouter:
    """Return the routes of the desk over a store, which is open while the application runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with await asyncio.to_thread(ReviewStore.open, address) as store:
            app.state.review = store
            yield

    router = APIRouter(lifespan=lifespan)
    router.include_router(_review)
    return router


async def _store_of(request: Request) -> ReviewStore:
    store: ReviewStore = request.app.state.review
    return store


AnyStore = Annotated[ReviewStore, Depends(_store_of)]


async def _queue_of(store: AnyStore, queue: str) -> Queue:
    """Return the queue that a path names, or raise 404."""
    known = {one.name: one for one in await asyncio.to_thread(queues, store)}
    if queue not in known:
        raise Problem(404, f"there is no queue '{queue:.100}'; /v1/review/queues lists all")
    return known[queue]


AnyQueue = Annotated[Queue, Depends(_queue_of)]


@_review.get("/queues", response_class=Response, responses={200: json_response(QueueList, "All queues."), **_FAULTS})
async def list_queues(store: AnyStore, caller: Reviewer) -> Response:
    """List the queues and how far they are."""

    def facts() -> list[QueueFacts]:
        return [QueueFacts(one.name, progress(store, one), one.options.plain()) for one in queues(store)]

    return _json(QueueList(await asyncio.to_thread(facts), caller.name))


@_review.post(
    "/queues/{queue}/next",
    response_class=Response,
    responses={200: json_response(Desk, "The next text; none where nothing is left."), **_FAULTS},
    openapi_extra=json_body(NextRequest, {"person": "ada"}),
)
async def next_text(
    request: Request, service: AnyService, store: AnyStore, queue: AnyQueue, caller: Reviewer
) -> Response:
    """Claim the next text of a queue."""
    asked = await _body(request, service, NextRequest)
    person = _person(caller, asked.person)
    text = await asyncio.to_thread(lambda: claim(store, queue, person, without=asked.without))
    return await _desk(service, store, queue, text, asked.model)


@_review.post(
    "/queues/{queue}/texts",
    response_class=Response,
    responses={200: json_response(Desk, "The text, claimed for whoever brought it."), **_FAULTS},
    openapi_extra=json_body(NewText, {"person": "ada", "fields": {"text": "a text editor for gnome"}}),
)
async def new_text(request: Request, service: AnyService, store: AnyStore, queue: str, caller: Reviewer) -> Response:
    """Add a text to a queue, which is made if it is new, and claim it."""
    asked = await _body(request, service, NewText)
    person = _person(caller, asked.person)
    if sum(map(len, asked.fields.values())) > service.settings.max_characters:
        raise Problem(422, f"a text must have at most {service.settings.max_characters:,} characters; cut it")
    place = await asyncio.to_thread(make_queue, store, queue)
    text = await asyncio.to_thread(claim_new_text, store, place, person, asked.fields)
    return await _desk(service, store, place, text, asked.model)


@_review.post(
    "/queues/{queue}/decisions",
    response_class=Response,
    responses={200: json_response(Acknowledged, "The decision is on disk."), **_FAULTS},
    openapi_extra=json_body(Filing, {"key": "a-key-of-yours", "text": 1, "labels": ["label1"], "person": "ada"}),
)
async def file_decision(
    request: Request, service: AnyService, store: AnyStore, queue: AnyQueue, caller: Reviewer
) -> Response:
    """Keep a decision; it is on disk when this answers."""
    asked = await _body(request, service, Filing)
    shown = tuple(Shown(one.id, one.score, one.checked, one.name) for one in asked.suggested)
    if not shown:
        shown = await shown_to_nobody(service, store, asked.text, asked.model)
    decision = Decision(
        key=asked.key,
        text_id=asked.text,
        person=_person(caller, asked.person),
        labels=tuple(asked.labels),
        suggested=shown,
        names=asked.names,
        model=asked.revision,
        threshold=asked.threshold,
        seconds=asked.seconds,
        keystrokes=asked.keystrokes,
    )
    try:
        filed = await asyncio.to_thread(lambda: decide(store, decision, kind=asked.kind, queue=queue))
    except DataError as error:
        raise Problem(404 if "there is no text" in str(error) else 503, str(error)) from error
    return _json(Acknowledged(asked.key, filed.late, filed.repeated))


@_review.post(
    "/queues/{queue}/undo",
    response_class=Response,
    responses={200: json_response(Desk, "The text; none where there is nothing to undo."), **_FAULTS},
    openapi_extra=json_body(UndoRequest, {"key": "a-key-of-yours", "person": "ada"}),
)
async def undo_last(
    request: Request, service: AnyService, store: AnyStore, queue: AnyQueue, caller: Reviewer
) -> Response:
    """Take back the last decision or skip of a person, and hand its text back."""
    asked = await _body(request, service, UndoRequest)
    person = _person(caller, asked.person)
    undone = await asyncio.to_thread(undo, store, queue, person, asked.key)
    if undone is None:
        return await _desk(service, store, queue, None, asked.model)
    names = await asyncio.to_thread(label_names, store, undone.labels)
    vocabulary = service.models.get(asked.model).method.vocabulary_
    names |= {label: vocabulary.name_of(label) for label in undone.labels if label in vocabulary.position}
    return await _desk(service, store, queue, undone.text, asked.model, filed=list(undone.labels), names=names)


@_review.get(
    "/queues/{queue}/texts",
    response_class=Response,
    responses={200: json_response(FoundTexts, "Texts that fit, in the order of the queue."), **_FAULTS},
    dependencies=[Depends(requires("review"))],
)
async def texts(
    store: AnyStore,
    queue: AnyQueue,
    q: Annotated[str, Query(max_length=200, description="Words that the text must have; all texts without any.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Response:
    """Find texts of a queue by their words."""
    matching = await asyncio.to_thread(find_texts, store, queue, q, limit)
    return _json(FoundTexts([TextOfQueue(text.id, dict(text.fields)) for text in matching]))


@_review.get(
    "/queues/{queue}/stats",
    response_class=Response,
    responses={200: {"description": "The figures of the dashboard.", "content": {_JSON: {}}}, **_FAULTS},
    dependencies=[Depends(requires("review"))],
)
async def stats(store: AnyStore, queue: AnyQueue) -> Response:
    """Return acceptance, effort, agreement and drift of a queue."""
    return _json(await asyncio.to_thread(figures, store, queue))


async def _desk(
    service: Service,
    store: ReviewStore,
    queue: Queue,
    text: ClaimedText | None,
    model: str | None,
    *,
    filed: list[str] | None = None,
    names: dict[str, str] | None = None,
) -> Response:
    """Return a text with its suggestions, and how far the queue is."""
    item: Item | None = None
    if text is not None:
        item = await item_for(service, text, model)
        item.filed, item.filed_names = filed, names
    return _json(Desk(queue.name, await asyncio.to_thread(progress, store, queue), item))


async def _body(request: Request, service: Service, kind: type[T]) -> T:
    return decode(await read_body(request, service.settings), msgspec.json.Decoder(kind))


def _person(caller: Caller, given: str) -> str:
    """Return who reviews: the name beside the token, else the name that was given."""
    name = caller.name or given.strip()
    if not name or not name.isprintable():
        raise Problem(422, f"`person` must be the visible name of who reviews, got {given!r:.60}")
    return name


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type=_JSON)
