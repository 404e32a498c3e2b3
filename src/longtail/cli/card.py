"""`longtail card`: a model card in Markdown, as the Hugging Face hub reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.flags import Model, Quiet, Verify, option, with_flags
from longtail.cli.screen import Screen

ReportFolder = Annotated[
    Path | None,
    option("The folder of a report (longtail evaluate --report): its figures go in.", "FOLDER", "--report"),
]
Languages = Annotated[
    list[str] | None, option("A language of the texts, such as en. May be repeated.", "CODE", "--language")
]
Licence = Annotated[str | None, option("The licence of the model, such as apache-2.0.", "NAME", "--license")]
Out = Annotated[Path | None, option("A file for the card, such as README.md.", "FILE", "--out", "-o")]


@with_flags
def card(
    model: Model,
    report: ReportFolder = None,
    language: Languages = None,
    license: Licence = None,
    out: Out = None,
    quiet: Quiet = False,
    verify: Verify = False,
) -> None:
    """Write a model card from the facts of a model and of its report."""
    from longtail.files import write_text
    from longtail.methods import load_model
    from longtail.report.card import load_report, model_card

    facts = None if report is None else load_report(report)
    tagger = load_model(model, verify=verify or None)
    content = model_card(tagger, model, report=facts, languages=language or (), licence=license)
    if out is None:
        typer.echo(content, nl=False)
        return
    write_text(out, content)
    Screen(quiet).note(f"{out}: written")
