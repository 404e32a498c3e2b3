"""Change the labels of a served model: the folder's manifest is written, and the server goes on with the new labels.

POST /v1/labels/edits   one change      GET /v1/labels/edits   the last changes, and whether the caller may make more
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, LongtailError
from longtail.label_editor import LabelEditor
from longtail.labels.edits import LabelEdit, in_force
from longtail.serve.about import AnyService, tell_other_workers
from longtail.serve.access import Caller, requires
from longtail.serve.problems import Problem, responses
from longtail.serve.requests import decode, read_body
from longtail.serve.schemas import json_body, json_response

router = APIRouter(tags=["labels"])


class EditRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One change of a model's labels."""

    action: Literal["add", "rename", "merge", "retire", "restore", "undo"]
    label: Annotated[str, msgspec.Meta(description="Id or name of the label; `add`: the id of the new one.")] = ""
    name: Annotated[str, msgspec.Meta(description="`add`, `rename`: the name.")] = ""
    into: Annotated[str, msgspec.Meta(description="`merge`: id or name of the label that is suggested instead.")] = ""
    examples: Annotated[
        list[str | dict[str, str]], msgspec.Meta(description="`add`: texts that have the label, or their fields.")
    ] = []
    parents: Annotated[list[str], msgspec.Meta(description="`add`: ids or names of broader labels.")] = []
    alternatives: Annotated[list[str], msgspec.Meta(description="`add`: other names.")] = []
    person: Annotated[
        str, msgspec.Meta(description="Who makes the change; where tokens are used, the name beside the token counts.")
    ] = ""
    model: Annotated[str | None, msgspec.Meta(description="The name of a model; by default the first.")] = None


class Edited(msgspec.Struct):
    """What was changed."""

    action: str
    label: str
    name: str
    into: str
    person: str
    time: str
    model: str
    revision: str


class PastEdit(msgspec.Struct):
    """A change that was made."""

    action: str
    label: str
    name: Annotated[str, msgspec.Meta(description="The name of the label now; `rename`: the name that it got.")]
    old_name: Annotated[str, msgspec.Meta(description="`rename`: the name before.")]
    into: str
    into_name: str
    n_examples: int
    person: str
    time: str
    undone: bool


class EditHistory(msgspec.Struct):
    """Changes since the model was trained, the first one first."""

    edits: list[PastEdit]
    n_edits: Annotated[int, msgspec.Meta(description="How many there are; only the last ones are listed.")]
    may_edit: Annotated[bool, msgspec.Meta(description="Whether the caller may change labels.")]
    person: Annotated[str, msgspec.Meta(description="The name beside the caller's token; empty without tokens.")]
    model: str
    revision: str


_DECODER = msgspec.json.Decoder(EditRequest)


@router.post(
    "/v1/labels/edits",
    response_class=Response,
    responses={200: json_response(Edited, "What was changed."), **responses(400, 401, 403, 404, 408, 409, 413, 422)},
    openapi_extra=json_body(EditRequest, {"action": "rename", "label": "uitoolkit::gtk", "name": "GTK"}),
)
async def edit(
    request: Request, service: AnyService, caller: Annotated[Caller, Depends(requires("admin"))]
) -> Response:
    """Add, rename, merge, retire or restore a label, or undo the last change; other workers follow within seconds."""
    asked = decode(await read_body(request, service.settings), _DECODER)
    model = service.models.get(asked.model)
    try:
        done = await asyncio.to_thread(_make, model.path, asked, caller.name or asked.person)
        await service.reload(model.name)
    except ConfigError:
        raise
    except LongtailError as error:
        raise Problem(409, str(error)) from error
    tell_other_workers()
    revision = service.models.get(model.name).revision
    answer = Edited(
        action=done.action,
        label=done.label,
        name=done.name,
        into=done.into,
        person=done.person,
        time=done.time,
        model=model.name,
        revision=revision,
    )
    return Response(msgspec.json.encode(answer), media_type="application/json")


@router.get(
    "/v1/labels/edits",
    response_class=Response,
    responses={200: json_response(EditHistory, "The last changes."), **responses(401, 403, 404, 422)},
)
async def history(
    service: AnyService,
    caller: Annotated[Caller, Depends(requires("tag"))],
    model: Annotated[str | None, Query(description="The name of a model; by default the first.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="So many of the last changes.")] = 100,
) -> Response:
    """List the last changes of labels, undone ones too."""
    served = service.models.get(model)
    past, vocabulary = served.method.label_history, served.method.vocabulary_
    kept = {id(one) for one in in_force(past)}
    old_names = _old_names(past, served.method.trained_vocabulary_)
    edits = [
        PastEdit(
            action=one.action,
            label=one.label,
            name=one.name or vocabulary.name_of(one.label),
            old_name=old_name,
            into=one.into,
            into_name=vocabulary.name_of(one.into),
            n_examples=len(one.examples),
            person=one.person,
            time=one.time,
            undone=one.action != "undo" and id(one) not in kept,
        )
        for one, old_name in list(zip(past, old_names, strict=True))[-limit:]
    ]
    answer = EditHistory(edits, len(past), "admin" in caller.roles, caller.name, served.name, served.revision)
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _old_names(history: Sequence[LabelEdit], trained: Vocabulary) -> list[str]:
    """Return for each change that is a `rename` the name before, and for others an empty text."""
    names: dict[str, str] = {}
    before: list[tuple[str, str]] = []  # of each change in force: its label, and the name that this had
    old_names = []
    for edit in history:
        old_names.append("")
        if edit.action == "undo":
            label, name = before.pop()
            names[label] = name
            continue
        name = names.get(edit.label) or trained.name_of(edit.label)
        before.append((edit.label, name))
        if edit.action == "rename":
            old_names[-1] = name
        names[edit.label] = edit.name or name
    return old_names


def _make(path: Path, asked: EditRequest, person: str) -> LabelEdit:
    editor = LabelEditor(path, person)
    if asked.action == "add":
        return editor.add(
            asked.name, asked.examples, label_id=asked.label, parents=asked.parents, alternatives=asked.alternatives
        )
    if asked.action == "undo":
        return editor.undo().model_copy(update={"action": "undo"})
    if asked.action == "rename":
        return editor.rename(asked.label, asked.name)
    if asked.action == "merge":
        return editor.merge(asked.label, asked.into)
    return editor.retire(asked.label) if asked.action == "retire" else editor.restore(asked.label)
