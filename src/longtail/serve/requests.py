"""What requests for labels must be, and how they are read: decoded by msgspec, checked against the limits.

{"texts": ["…"], "k": 5, "threshold": 0.2, "allow": ["…"], "deny": ["…"], "model": "…"}
{"records": [{"title": "…", "text": "…"}], …}
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from fastapi import Request

from longtail.serve.models import ServedModel
from longtail.serve.problems import Problem
from longtail.serve.settings import ServeSettings

T = TypeVar("T")
Fields = dict[str, Any]


class TagRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Texts that want labels."""

    texts: Annotated[list[str] | None, msgspec.Meta(description="Texts; or give `records`.")] = None
    records: Annotated[
        list[Fields] | None,
        msgspec.Meta(description="Texts with fields, such as `title` and `text`; others are ignored."),
    ] = None
    k: Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="Labels per text, at most.")] = 5
    threshold: Annotated[
        float | Literal["auto"] | None,
        msgspec.Meta(
            description="Leave out labels that score less; `auto` is the best for micro-F1 of calibrated models."
        ),
    ] = None
    min_precision: Annotated[
        float | None,
        msgspec.Meta(description="Instead of `threshold`: of these labels so many are right, 0.9 is 90 %."),
    ] = None
    min_recall: Annotated[
        float | None, msgspec.Meta(description="Instead of `threshold`: so many of a text's labels are among these.")
    ] = None
    allow: Annotated[
        list[str] | None, msgspec.Meta(description="Only these labels (id or name) or branches (`science/*`).")
    ] = None
    deny: Annotated[list[str] | None, msgspec.Meta(description="None of these labels or branches.")] = None
    model: Annotated[str | None, msgspec.Meta(description="The name of a model; by default the first.")] = None


class Label(msgspec.Struct):
    """A suggested label."""

    id: str
    name: str
    path: Annotated[list[str], msgspec.Meta(description="Names of its broader concepts, from the top down.")]
    score: float


class TextResult(msgspec.Struct):
    """The labels of one text."""

    labels: Annotated[list[Label], msgspec.Meta(description="Best first.")]
    predicted_recall: Annotated[
        float | None,
        msgspec.Meta(description="Share of the text's labels that are expected here; null where not calibrated."),
    ]
    route: Annotated[
        str | None,
        msgspec.Meta(description="automatic, review or hard; null where the model's scores are not calibrated."),
    ]
    cut: Annotated[bool, msgspec.Meta(description="Whether the model has read only the beginning of the text.")]


class TagResponse(msgspec.Struct):
    """The labels of all texts, in the order of the texts."""

    results: list[TextResult]
    model: str
    revision: Annotated[str, msgspec.Meta(description="Changes with the files of the model.")]


async def read_body(request: Request, settings: ServeSettings) -> bytes:
    """Return the body of a request; raise where it is too long or does not arrive."""
    length = request.headers.get("content-length")
    if length is not None and length.isdecimal() and int(length[:20]) > settings.max_body_bytes:
        raise _too_long(settings)
    pieces: list[bytes] = []
    n_bytes = 0
    try:
        async with asyncio.timeout(settings.read_timeout_s):
            while True:
                message = await request.receive()
                if message["type"] != "http.request":
                    raise Problem(400, "the connection was closed before the whole request had arrived")
                piece = message.get("body", b"")
                n_bytes += len(piece)
                if n_bytes > settings.max_body_bytes:
                    raise _too_long(settings)
                pieces.append(piece)
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        seconds = f"{settings.read_timeout_s:g} s"
        raise Problem(408, f"the body must arrive within {seconds}", {"Connection": "close"}) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what a body of JSON says: 400 where it is no JSON, 422 where it says something else than it must."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, f"the request cannot be used: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body must be JSON in UTF-8: {error}") from None
    except RecursionError:
        raise Problem(400, "the body must be JSON that is not nested so deeply") from None


def check_k(k: int, settings: ServeSettings) -> None:
    """Raise if too many labels are asked for."""
    if k > settings.max_k:
        raise Problem(422, f"k must be at most {settings.max_k:,}, got {k:,}")


def rows_of(
    texts: list[str] | None, records: list[Fields] | None, model: ServedModel, settings: ServeSettings
) -> list[tuple[tuple[str, ...], list[int], list[tuple[str, ...]]]]:
    """Return the texts by the fields that they have: field names, places of the texts, and the fields of each.

    Exactly one of `texts` and `records` must be given.
    """
    if (texts is None) == (records is None):
        raise Problem(422, f"either `texts` or `records` must be given, got {'both' if texts is not None else 'none'}")
    given = texts if texts is not None else records or []
    if not 1 <= len(given) <= settings.max_texts:
        raise Problem(
            422, f"a request must have 1 to {settings.max_texts:,} texts, got {len(given):,}; send several requests"
        )
    if texts is not None:
        columns = model.columns_of_text
        for place, text in enumerate(texts):
            if len(text) > settings.max_characters:
                raise _too_large(f"texts[{place}]", len(text), settings)
        return [(columns, list(range(len(texts))), [(text,) * len(columns) for text in texts])]
    groups: dict[tuple[str, ...], tuple[list[int], list[tuple[str, ...]]]] = {}
    for place, record in enumerate(records or ()):
        columns, fields = _fields_of(record, place, model)
        if sum(map(len, fields)) > settings.max_characters:
            raise _too_large(f"records[{place}]", sum(map(len, fields)), settings)
        places, rows = groups.setdefault(columns, ([], []))
        places.append(place)
        rows.append(fields)
    return [(columns, places, rows) for columns, (places, rows) in groups.items()]


def _fields_of(record: Fields, place: int, model: ServedModel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and texts of the fields that the model reads; a field that is null is not there."""
    columns = tuple(name for name in model.columns if record.get(name) is not None)
    missing = next((name for name in model.method.columns if name not in columns), None)
    if missing is not None:
        got = ", ".join(f"'{name:.40}'" for name in list(record)[:5]) or "none"
        raise Problem(422, f"records[{place}] must have the field '{missing}', got {got}")
    wrong = next((name for name in columns if not isinstance(record[name], str)), None)
    if wrong is not None:
        raise Problem(422, f"records[{place}]: the field '{wrong}' must be a text, got {record[wrong]!r:.60}")
    return columns, tuple(record[name] for name in columns)


def _too_long(settings: ServeSettings) -> Problem:
    """Return what is said of a body that is too long; the rest of it is not read."""
    return Problem(
        413,
        f"a body must have at most {settings.max_body_bytes:,} bytes; send several requests",
        {"Connection": "close"},
    )


def _too_large(what: str, length: int, settings: ServeSettings) -> Problem:
    return Problem(422, f"{what} must have at most {settings.max_characters:,} characters, got {length:,}; cut it")
