"""`longtail demo`: the first minute. Trains on the bundled data set, measures, and shows what came out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import Quiet
from longtail.cli.screen import Screen, in_bytes, in_seconds

if TYPE_CHECKING:
    from longtail.evaluation import Evaluation
    from longtail.methods.base import Suggestion

DATA = "debtags"
N_SAMPLES = 3
EXCERPT = 220
SHOWN_METRICS = {
    "P@1": "the first suggestion is right",
    "P@5": "of five suggestions are right",
    "R@5": "of all true labels are among the five",
    "nDCG@5": "quality of the order",
}

DemoText = Annotated[str, typer.Argument(metavar="TEXT", help="A text of your own to be tagged.")]
DemoOut = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the model and the report go.")]


def demo(
    text: DemoText = "a text editor for gnome", out: DemoOut = Path("longtail-demo"), quiet: Quiet = False
) -> None:
    """Train on the bundled data set, measure, and tag a text: takes seconds."""
    from longtail.data.load import load_dataset
    from longtail.evaluation import evaluate_model
    from longtail.methods import create_method
    from longtail.metrics import BootstrapOptions
    from longtail.report import make_report, write_report
    from longtail.report.contents import folder_bytes

    screen = Screen(quiet)
    paper = screen.paper
    dataset = load_dataset(DATA, progress=screen.progress)
    train, dev = dataset.train, dataset.dev
    paper.print(
        f"[bold]{DATA}[/bold]: {len(train):,} descriptions of Debian packages, "
        f"{len(dataset.vocabulary):,} labels that say what a package is and what it is for"
    )
    start = time.perf_counter()
    model = create_method("linear").fit(train, progress=screen.progress)
    trained_s = time.perf_counter() - start
    place = out / "model"
    model.save(place)
    size = in_bytes(folder_bytes(place))
    paper.print(f"trained in [bold]{in_seconds(trained_s)}[/bold], saved in {place} ({size})\n")

    found = evaluate_model(model, dev, bootstrap=BootstrapOptions(), progress=screen.progress)
    paper.print(f"[bold]on {len(dev):,} packages that it has not seen[/bold]")
    for name, about in SHOWN_METRICS.items():
        paper.print(f"  {name:<7} [bold cyan]{100 * found.metrics.values[name]:5.1f}[/bold cyan]  {about}")
    paper.print("\n[bold]some of them[/bold]  ([green]right[/green], [dim]not among the true labels[/dim])")
    for row in _samples(found):
        _show_text(screen, found, row)
    paper.print(f"[bold]your text:[/bold] {text}", soft_wrap=True)
    for suggestion in model.predict([text])[0]:
        _show_suggestion(screen, suggestion)
    files = write_report(make_report(model, found, DATA, "dev", place), out)
    paper.print(f"\n[bold]report[/bold]      {files['report.html'].resolve()}", soft_wrap=True)
    paper.print(f"[bold]next[/bold]        echo 'play chess' | longtail predict {place}", soft_wrap=True)
    paper.print("            longtail train YOUR.csv --out MODEL --hold-out   (columns text, labels)", soft_wrap=True)


def _samples(found: Evaluation) -> list[int]:
    """Texts with something to see: a handful of true labels."""
    import numpy as np

    true = found.truth.labels_per_text()
    several = np.flatnonzero((true >= 4) & (true <= 7))
    drawn: list[int] = np.random.default_rng(4).permutation(several)[:N_SAMPLES].tolist()
    return drawn


def _show_text(screen: Screen, found: Evaluation, row: int) -> None:
    from rich.padding import Padding
    from rich.text import Text

    text = " ".join(str(found.split.texts["text"][row].as_py()).split())
    names, true = found.vocabulary.names, set(found.truth[row].tolist())
    labels: list[int] = found.predicted.labels[row, :5].tolist()
    shown = Text(f"{text[:EXCERPT]}{' …' if len(text) > EXCERPT else ''}", style="italic")
    screen.paper.print(Padding(shown, (0, 0, 0, 2)))
    shown = Text()
    for number, label in enumerate(labels):
        shown.append("  ·  " if number else "").append(names[label], style="green" if label in true else "dim")
    screen.paper.print(Padding(shown, (0, 0, 0, 4)))
    missed = [names[label] for label in sorted(true - set(labels))]
    if missed:
        screen.paper.print(Padding(Text("missed: " + "  ·  ".join(missed), style="dim"), (0, 0, 0, 4)))
    screen.paper.print()


def _show_suggestion(screen: Screen, suggestion: Suggestion) -> None:
    from rich.text import Text

    line: Any = Text(f"  {suggestion.score:.2f}  ", style="cyan")
    screen.paper.print(line.append(suggestion.name, style="default").append(f"  {suggestion.id}", style="dim"))
