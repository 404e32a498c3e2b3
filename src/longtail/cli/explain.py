"""`longtail explain`: why a model gives a text its labels, with the words that speak for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import ModelFlags, RunFlags, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError

if TYPE_CHECKING:
    from rich.text import Text

    from longtail.explain import ExampleTexts, Explanation
    from longtail.methods.base import Method

STDIN = "-"
SHOWN_WORDS = 8
SHOWN_CHARACTERS = 200
_STYLES = ("", "on dark_green", "bold on dark_green", "bold white on green4")

TextToExplain = Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads it from standard input.")]
Labels = Annotated[list[str] | None, option("A label, by id or name. May be repeated.", "LABEL", "--label", "-l")]
K = Annotated[int, option("Without --label: how many of the best labels are explained.", "N", "-k", "--k")]
Page = Annotated[Path | None, option("Write a page with the marked text there.", "FILE", "--html")]
ExampleData = Annotated[
    str | None,
    option("Data whose train part is searched for the nearest texts with the label.", "DATA", "--data"),
]


@with_flags
def explain(
    model: ModelFlags,
    flags: RunFlags,
    text: TextToExplain = STDIN,
    label: Labels = None,
    k: K = 1,
    html: Page = None,
    data: ExampleData = None,
) -> None:
    """Show which words of a text speak for a label, and the nearest training texts that carry it."""
    from longtail.files import write_text
    from longtail.report.explanation import html_explanation

    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    screen = flags.screen
    tagger = model.open(screen.progress)
    content = sys.stdin.read() if text == STDIN else text
    fields = dict.fromkeys(("text", *tagger.columns), content)
    examples = None if data is None else examples_of(tagger, data, screen)
    labels = label or [best.id for best in tagger.predict([fields], k, run=flags.run)[0]]
    if not labels:
        screen.warn("the model proposes no label for this text; name one with --label")
    explanations = [tagger.explain(fields, one, examples=examples, run=flags.run) for one in labels]
    if html is not None:
        write_text(html, html_explanation(explanations))
        screen.note(f"{html}: written")
    if flags.as_json:
        write_json([one.to_dict() for one in explanations])
        return
    for one in explanations:
        show_explanation(screen, one)


def examples_of(model: Method, data: str, screen: Screen) -> ExampleTexts:
    """Return the training texts of DATA, as the model was trained on them."""
    from longtail.evaluation import as_trained
    from longtail.explain import ExampleTexts
    from longtail.training import load_for

    dataset = as_trained(model, load_for(model, {"source": data}, screen.progress))
    return ExampleTexts.of(dataset.train)


def show_explanation(screen: Screen, explanation: Explanation) -> None:
    """Print a label, the text with its words marked, and what else is known."""
    from longtail.report.explanation import HOW, score_text, sentences

    screen.headline(explanation.name, f"{score_text(explanation)}. {HOW[explanation.method]}")
    for marked in marked_fields(explanation):
        screen.console.print(marked)
    words = ", ".join(f"{word.word} {word.weight:+.2f}" for word in explanation.top(SHOWN_WORDS))
    lines = [f"for it: {words}" if words else "no word speaks for it", *sentences(explanation)]
    for example in explanation.nearest:
        text = " ".join((example.text or "").split())[:SHOWN_CHARACTERS]
        lines.append(f"training text {example.text_number:,}, similarity {example.similarity:.2f}: {text}".rstrip(": "))
    for line in lines:
        screen.console.print(line, markup=False)
    screen.console.print()


def marked_fields(explanation: Explanation) -> list[Text]:
    """Return the fields of the text with the words that speak for the label highlighted, those against it dim."""
    from rich.text import Text

    by_field = {name: Text(text) for name, text in explanation.fields.items()}
    for field, start, end, weight in explanation.highlights():
        strength = round(abs(weight) * (len(_STYLES) - 1))
        by_field[field].stylize(_STYLES[strength] if weight > 0 else "dim" if strength else "", start, end)
    return [text for name, text in by_field.items() if explanation.fields[name]]
