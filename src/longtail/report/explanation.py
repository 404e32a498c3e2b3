"""Explanations as a page: the text with its words marked, the words that count, the members, the nearest examples.

The page is one file that needs nothing else. Marks differ by more than colour: words against the label are underlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from longtail.explain.explanation import Explanation, Word
from longtail.report.contents import environment
from longtail.report.html import document, list_html, section, table_html
from longtail.tables import Table

HOW = {
    "contributions": "Weights are what each word adds to the label's score.",
    "integrated gradients": "Weights are what each word adds on the way from an empty text to this one.",
    "occlusion": "Weights are what the label's score loses without the word.",
    "members": "Weights are those of the members of the model, by how much each says for the label.",
}
_STRENGTHS = 4
_SHOWN_WORDS, _LEAST = 12, 0.02
"""So many words are listed, down to this share of the largest weight."""
_SHOWN_CHARACTERS = 600


def html_explanation(explanations: Explanation | Sequence[Explanation], title: str = "Why these labels") -> str:
    """Return a page that needs nothing else, with one section per explanation."""
    several = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    about: dict[str, Any] = {"title": title, "made": now, "environment": environment()}
    intro = "Marked words speak for the label, the darker the more; underlined ones against it."
    return document(about, title, intro, [_section(one) for one in several])


def explanation_fragment(explanation: Explanation) -> str:
    """Return the fields of the text as HTML with their words marked; the marks have classes `for-1` to `against-4`."""
    places = explanation.highlights()
    blocks = []
    for name, text in explanation.fields.items():
        pieces, at = [], 0
        for field, start, end, weight in places:
            strength = round(abs(weight) * _STRENGTHS)
            if field != name or not strength:
                continue
            kind = f"{'for' if weight > 0 else 'against'}-{strength}"
            pieces += [escape(text[at:start]), f'<mark class="{kind}">{escape(text[start:end])}</mark>']
            at = end
        pieces.append(escape(text[at:]))
        above = f"<h3>{escape(name)}</h3>" if len(explanation.fields) > 1 else ""
        blocks.append(f'{above}<p class="marked">{"".join(pieces)}</p>')
    return "".join(blocks)


def word_table(words: Sequence[Word]) -> Table:
    """Return words and their weights."""
    return Table(["word", "weight"], [[word.word, f"{word.weight:+.3f}"] for word in words])


def sentences(explanation: Explanation) -> list[str]:
    """Return what must be said beside the words."""
    quoted = ", ".join(f"“{name}”" for name in explanation.names)
    shares = ", ".join(f"{one.name} {one.share:.0%}" for one in explanation.members)
    margins = ", ".join(f"{level.name} {level.margin:+.2f}" for level in explanation.levels)
    return [
        *([f"The text contains its name: {quoted}."] if quoted else []),
        *([f"How much each member says for it: {shares}."] if shares else []),
        *([f"Margins on the way to the label: {margins}."] if margins else []),
        *([explanation.note] if explanation.note else []),
    ]


def score_text(explanation: Explanation) -> str:
    """Return the score in words."""
    return "not proposed" if explanation.score is None else f"score {explanation.score:.2f}"


def _section(explanation: Explanation) -> str:
    words = [word for word in explanation.top(_SHOWN_WORDS) if word.weight >= _LEAST * explanation.words[0].weight]
    table = table_html(word_table(words)) if words else "<p>No word speaks for it.</p>"
    label = "" if explanation.label == explanation.name else f" <small>{escape(explanation.label)}</small>"
    heading = f"{escape(explanation.name)}{label}"
    inside = [
        f"<article>{explanation_fragment(explanation)}</article>",
        list_html(sentences(explanation)),
        table,
        *(_nearest(explanation),),
    ]
    return section(heading, "".join(inside), f"{escape(score_text(explanation))}. {HOW[explanation.method]}")


def _nearest(explanation: Explanation) -> str:
    if not explanation.nearest:
        return ""
    cards = "".join(
        f'<article><p class="place">training text {one.text_number:,}, similarity {one.similarity:.2f}</p>'
        f"<p>{escape((one.text or '')[:_SHOWN_CHARACTERS])}</p></article>"
        for one in explanation.nearest
    )
    return f"<h3>The nearest training texts with this label</h3>{cards}"
