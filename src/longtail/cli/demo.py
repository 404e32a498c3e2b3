"""`longtail demo`: train on the bundled data set, measure, and show the result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import Quiet, option, with_flags
from longtail.cli.predict import show_suggestions
from longtail.cli.screen import Screen
from longtail.units import in_bytes, in_seconds

if TYPE_CHECKING:
    from longtail.evaluation import Evaluation

DATA = "debtags-sample"
N_SAMPLES = 3
EXCERPT = 220
SHOWN_METRICS = {
    "P@1": "the first suggestion is right",
    "P@5": "of five suggestions are right",
    "R@5": "of all true labels are among the five",
    "nDCG@5": "quality of the order",
}

DemoText = Annotated[str, typer.Argument(metavar="TEXT", help="A text of your own to be tagged.")]
DemoOut = Annotated[Path, option("Where the model and the report go.", "FOLDER", "--out", "-o")]


@with_flags
def demo(
    text: DemoText = "a text editor for gnome", out: DemoOut = Path("longtail-demo"), quiet: Quiet = False
) -> None:
    """Train on the bundled data set, measure, and tag a text; takes seconds."""
    from rich.markup import escape

    from longtail.data.load import load_dataset
    from longtail.evaluation import evaluate_model
    from longtail.methods import create_method
    from longtail.metrics import BootstrapOptions
    from longtail.report import make_report, write_report
    from longtail.report.contents import folder_bytes

    screen = Screen(quiet)
    console = screen.console
    dataset = load_dataset(DATA, progress=screen.progress)
    train, dev = dataset.train, dataset.dev
    console.print(
        f"[bold]{DATA}[/bold]: {len(train):,} descriptions of Debian packages, "
        f"{len(dataset.vocabulary):,} labels that say what a package is and what it is for"
    )
    start = time.perf_counter()
    model = create_method("linear").fit(train, progress=screen.progress)
    trained_s = time.perf_counter() - start
    place = out / "model"
    model.save(place)
    size = in_bytes(folder_bytes(place))
    console.print(f"trained in [bold]{in_seconds(trained_s)}[/bold], saved in {escape(str(place))} ({size})\n")

    evaluation = evaluate_model(model, dev, bootstrap=BootstrapOptions(), progress=screen.progress)
    console.print(f"[bold]on {len(dev):,} packages that it has not seen[/bold]")
    for name, about in SHOWN_METRICS.items():
        console.print(f"  {name:<7} [bold cyan]{100 * evaluation.metrics.values[name]:5.1f}[/bold cyan]  {about}")
    console.print("\n[bold]some of them[/bold]  ([green]right[/green], [dim]not among the true labels[/dim])")
    for row in _samples(evaluation):
        _show_text(screen, evaluation, row)
    show_suggestions(screen, f"your text: {text}", model.predict([text])[0])
    files = write_report(make_report(model, evaluation, DATA, "dev", place), out)
    console.print(f"[bold]report[/bold]      {escape(str(files['report.html'].resolve()))}", soft_wrap=True)
    console.print(f"[bold]next[/bold]        echo 'play chess' | longtail predict {escape(str(place))}", soft_wrap=True)
    console.print("            longtail train YOUR.csv --out MODEL --hold-out   (columns text, labels)", soft_wrap=True)


def _samples(evaluation: Evaluation) -> list[int]:
    """Return some texts with four to seven true labels."""
    import numpy as np

    true = evaluation.truth.labels_per_text()
    several = np.flatnonzero((true >= 4) & (true <= 7))
    drawn: list[int] = np.random.default_rng(4).permutation(several)[:N_SAMPLES].tolist()
    return drawn


def _show_text(screen: Screen, evaluation: Evaluation, row: int) -> None:
    from rich.padding import Padding
    from rich.text import Text

    text = " ".join(str(evaluation.split.texts["text"][row].as_py()).split())
    names, true = evaluation.vocabulary.names, set(evaluation.truth[row].tolist())
    labels: list[int] = evaluation.predicted.labels[row, :5].tolist()
    shown = Text(f"{text[:EXCERPT]}{' …' if len(text) > EXCERPT else ''}", style="italic")
    screen.console.print(Padding(shown, (0, 0, 0, 2)))
    shown = Text()
    for number, label in enumerate(labels):
        shown.append("  ·  " if number else "").append(names[label], style="green" if label in true else "dim")
    screen.console.print(Padding(shown, (0, 0, 0, 4)))
    missed = [names[label] for label in sorted(true - set(labels))]
    if missed:
        screen.console.print(Padding(Text("missed: " + "  ·  ".join(missed), style="dim"), (0, 0, 0, 4)))
    screen.console.print()
