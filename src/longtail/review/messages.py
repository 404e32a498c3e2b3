"""What the review desk's requests and answers hold; decoded and checked by msgspec."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_ID = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Person = Annotated[
    str,
    msgspec.Meta(max_length=100, description="Who reviews; where tokens are used, the name beside the token counts."),
]
Key = Annotated[
    str,
    msgspec.Meta(
        min_length=8, max_length=100, description="Chosen by the sender; what is sent twice under one key is kept once."
    ),
]
_MOST_SHOWN = 1000


class NextRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Asks for the next text."""

    person: Person = ""
    without: Annotated[list[_ID], msgspec.Meta(max_length=100, description="Texts that the person has at hand.")] = (
        msgspec.field(default_factory=list)
    )
    model: str | None = None


class NewText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A text that a person brings."""

    fields: Annotated[dict[_Name, str], msgspec.Meta(min_length=1, max_length=50)]
    person: Person = ""
    model: str | None = None


class Suggested(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A suggestion as it was shown."""

    id: _Name
    score: float
    checked: Annotated[bool, msgspec.Meta(description="Whether it was checked before the person did anything.")]
    name: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class Filing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a person files for a text."""

    key: Key
    text: _ID
    kind: Literal["accept", "skip"] = "accept"
    labels: Annotated[list[_Name], msgspec.Meta(max_length=_MOST_SHOWN)] = msgspec.field(default_factory=list)
    suggested: Annotated[list[Suggested], msgspec.Meta(max_length=_MOST_SHOWN)] = msgspec.field(default_factory=list)
    names: Annotated[dict[_Name, _Name], msgspec.Meta(max_length=_MOST_SHOWN, description="Of added labels.")] = (
        msgspec.field(default_factory=dict)
    )
    person: Person = ""
    model: str | None = None
    revision: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    threshold: float | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, lt=1e9)] | None = None
    keystrokes: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] | None = None


class UndoRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Takes the last decision back."""

    key: Key
    person: Person = ""
    model: str | None = None


class LabelToShow(msgspec.Struct):
    """A suggestion to be shown."""

    id: str
    name: str
    path: list[str]
    score: float
    checked: bool


class Item(msgspec.Struct):
    """A text that is a person's to decide on, with what the model suggests."""

    text: int
    fields: dict[str, str]
    blind: Annotated[bool, msgspec.Meta(description="Shown without suggestions, to see what people file unprompted.")]
    suggested: list[LabelToShow]
    threshold: float
    calibrated: Annotated[bool, msgspec.Meta(description="Whether scores are probabilities.")]
    route: str | None
    cut: Annotated[bool, msgspec.Meta(description="Whether the model has read only the beginning of the text.")]
    model: str
    revision: str
    filed: Annotated[list[str] | None, msgspec.Meta(description="What the person had filed and took back.")] = None
    filed_names: Annotated[dict[str, str] | None, msgspec.Meta(description="Names of these labels, by id.")] = None


class Desk(msgspec.Struct):
    """How far a queue is, and the next text of it."""

    queue: str
    progress: dict[str, int]
    item: Item | None


class TextOfQueue(msgspec.Struct):
    """A text of a queue."""

    text: int
    fields: dict[str, str]


class FoundTexts(msgspec.Struct):
    """Texts that have the words that were asked for."""

    texts: list[TextOfQueue]


class Acknowledged(msgspec.Struct):
    """A decision that is on disk."""

    key: str
    late: bool
    repeated: bool


class QueueFacts(msgspec.Struct):
    """A queue."""

    name: str
    progress: dict[str, int]
    options: dict[str, int | float | str]


class QueueList(msgspec.Struct):
    """All queues, and who asks."""

    queues: list[QueueFacts]
    person: Annotated[str, msgspec.Meta(description="The name beside the token; empty where people name themselves.")]
