"""What `explain` returns: why a label fits a text, as plain values that pages, terminals and JSON show.

Offsets are characters of the text's fields as `Explanation.fields` has them. All occurrences of a word have one
weight: it says what changes if the word is not in the text at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from longtail.explain.examples import ExampleTexts

HowExplained: TypeAlias = Literal["contributions", "integrated gradients", "occlusion", "members"]
"""`contributions`: terms of the sum that the score is made of. `integrated gradients`: along the way from an empty text
to this one. `occlusion`: what the score loses without the word. `members`: those of all members, by their shares."""


class Span(NamedTuple):
    """A place in a text."""

    field: str
    start: int
    end: int


@dataclass(frozen=True)
class Word:
    """A word of the text, in lower case, with all of its places."""

    word: str
    weight: float
    """More than 0 speaks for the label, less than 0 against it; weights of one explanation can be compared."""
    spans: tuple[Span, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"word": self.word, "weight": self.weight, "spans": [span._asdict() for span in self.spans]}


@dataclass(frozen=True)
class LevelMargin:
    """One classifier on the way from the root of a label tree to the label: its words and its bias are its margin."""

    name: str
    margin: float
    bias: float
    words: tuple[Word, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, without the words."""
        return {"name": self.name, "margin": self.margin, "bias": self.bias}


@dataclass(frozen=True)
class Share:
    """How much one member of a model says for the label."""

    name: str
    share: float
    """In 0..1; those of all members sum to 1."""
    explanation: Explanation | None
    """None where the member does not propose the label."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        explanation = None if self.explanation is None else self.explanation.to_dict()
        return {"name": self.name, "share": self.share, "explanation": explanation}


@dataclass(frozen=True)
class Example:
    """A training text that carries the label."""

    text_number: int
    """Row of the training data, from 0."""
    similarity: float
    """Cosine of both texts."""
    text: str | None = None
    """None where only the number is kept."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"text_number": self.text_number, "similarity": self.similarity, "text": self.text}


@dataclass(frozen=True)
class Explanation:
    """Why a label fits a text, or does not.

    For example:

        explanation = model.explain("a text editor for gnome", "GTK")
        [word.word for word in explanation.top(3)]        the words that speak most for the label
        explanation.to_dict()                             plain data for JSON
    """

    label: str
    name: str
    score: float | None
    """As `predict` shows it; None if the label is not among those that the model proposes for the text."""
    method: HowExplained
    fields: dict[str, str]
    """The fields of the text that the model reads."""
    words: tuple[Word, ...] = ()
    """The words that matter, those that speak most for the label first."""
    note: str = ""
    """How far to trust it, where that must be said."""
    levels: tuple[LevelMargin, ...] = ()
    """Linear methods: the classifiers from the root of the label tree to the label."""
    names: tuple[str, ...] = ()
    """Methods that look for names: those of the label that the text has."""
    members: tuple[Share, ...] = ()
    """Methods with members: how much each of them says for the label."""
    nearest: tuple[Example, ...] = ()
    """The nearest training texts that carry the label."""

    def top(self, n: int = 5) -> tuple[Word, ...]:
        """Return up to n words that speak for the label, the weightiest first."""
        return tuple(word for word in self.words[:n] if word.weight > 0)

    def highlights(self) -> list[tuple[str, int, int, float]]:
        """Return field, start, end and weight of all places in text order; the largest weight is 1 or −1."""
        largest = max((abs(word.weight) for word in self.words), default=0) or 1
        order = {name: number for number, name in enumerate(self.fields)}
        places = [(*span, word.weight / largest) for word in self.words for span in word.spans]
        return sorted(places, key=lambda place: (order[place[0]], place[1]))

    def beside(self, examples: ExampleTexts, n: int = 3) -> Explanation:
        """Return the same explanation with the n nearest of these training texts that carry the label."""
        return replace(self, nearest=examples.nearest(self.fields, self.label, n))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "label": self.label,
            "name": self.name,
            "score": self.score,
            "method": self.method,
            "note": self.note,
            "fields": dict(self.fields),
            "words": [word.to_dict() for word in self.words],
            "levels": [level.to_dict() for level in self.levels],
            "names": list(self.names),
            "members": [member.to_dict() for member in self.members],
            "nearest": [example.to_dict() for example in self.nearest],
        }
