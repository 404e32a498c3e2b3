"""Change the labels of a served model: the folder's manifest is written, and the server goes on with the new labels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from longtail.errors import ConfigError, LongtailError
from longtail.label_editor import LabelEditor
from longtail.labels.edits import LabelEdit
from longtail.serve.about import AnyService, tell_other_workers
from longtail.serve.access import requires
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
    examples: Annotated[list[str], msgspec.Meta(description="`add`: texts that have the label.")] = []
    parents: Annotated[list[str], msgspec.Meta(description="`add`: ids or names of broader labels.")] = []
    person: Annotated[str, msgspec.Meta(description="Who makes the change.")] = ""
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


_DECODER = msgspec.json.Decoder(EditRequest)


@router.post(
    "/v1/labels/edits",
    dependencies=[Depends(requires("admin"))],
    response_class=Response,
    responses={200: json_response(Edited, "What was changed."), **responses(400, 401, 403, 404, 408, 409, 413, 422)},
    openapi_extra=json_body(EditRequest, {"action": "rename", "label": "uitoolkit::gtk", "name": "GTK"}),
)
async def edit(request: Request, service: AnyService) -> Response:
    """Add, rename, merge, retire or restore a label, or undo the last change; other workers follow within seconds."""
    asked = decode(await read_body(request, service.settings), _DECODER)
    model = service.models.get(asked.model)
    try:
        done = await asyncio.to_thread(_make, model.path, asked)
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


def _make(path: Path, asked: EditRequest) -> LabelEdit:
    editor = LabelEditor(path, asked.person)
    if asked.action == "add":
        return editor.add(asked.name, asked.examples, label_id=asked.label, parents=asked.parents)
    if asked.action == "undo":
        return editor.undo().model_copy(update={"action": "undo"})
    if asked.action == "rename":
        return editor.rename(asked.label, asked.name)
    if asked.action == "merge":
        return editor.merge(asked.label, asked.into)
    return editor.retire(asked.label) if asked.action == "retire" else editor.restore(asked.label)
