"""`longtail distil`: train one fast model that ranks labels as a stack does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import EngineFlags, Model, NamedDataFlags, Resume, Settings, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.tables import Table
from longtail.units import in_bytes

if TYPE_CHECKING:
    from longtail.distilling import Distilled

To = Annotated[str, option("The method or preset of the new model.", "NAME", "--to")]
Out = Annotated[
    Path, option("The folder of the new model; an older one is replaced at the end.", "MODEL", "--out", "-o")
]
Folds = Annotated[
    int | None,
    option(
        "From the texts of how many folds to learn what the stack says; each is one more training. By default all that "
        "the stack kept.",
        "N",
        "--folds",
    ),
]


@with_flags
def distil(
    model: Model,
    data: NamedDataFlags,
    out: Out,
    flags: EngineFlags,
    to: To = "linear",
    settings: Settings = None,
    folds: Folds = None,
    resume: Resume = False,
) -> None:
    """Train one fast model that ranks labels as the stack MODEL does, on the DATA that this was trained on."""
    from longtail.distilling import distil_and_save
    from longtail.evaluation import as_trained
    from longtail.methods import create_method, load_model
    from longtail.methods.base import MODEL
    from longtail.persist import check_replaceable
    from longtail.report.contents import folder_bytes
    from longtail.training import data_facts

    run = flags.run
    check_replaceable(out, MODEL)
    with run.progress.step("open the model"):
        stack = load_model(model)
    options = create_method(to, settings=settings or ()).options.plain() if settings else None
    dataset = as_trained(stack, data.load(stack, run.progress))
    split = str(stack.facts_.get("split", "train"))
    facts = data_facts(dataset, data.data, split)
    distilled = distil_and_save(
        stack, dataset.split(split), out, to, options=options, n_folds=folds, facts=facts, resume=resume, run=run
    )
    sizes = {"stack": folder_bytes(model), "student": folder_bytes(out)}
    if flags.as_json:
        write_json({"model": str(out), "method": distilled.model.name, **distilled.plain(), "bytes": sizes})
    else:
        _show(flags.screen, distilled, sizes, to)


def _show(screen: Screen, distilled: Distilled, sizes: dict[str, int], to: str) -> None:
    """Print the student beside the stack, and what it keeps of its gain."""
    names: dict[str, str] = {"stack": "stack", "student": f"{to}, distilled", "alone": f"{to} alone"}
    of_student: dict[str, Any] = {"alone": "student"}
    cells = [
        [
            name,
            f"{100 * distilled.ndcg[key]:.2f}",
            f"{distilled.ms_per_text[of_student.get(key, key)]:.2f}",
            in_bytes(sizes[of_student.get(key, key)]),
        ]
        for key, name in names.items()
    ]
    screen.table(
        Table(["", "nDCG@5", "ms per text", "size"], cells), f"{distilled.n_held_out:,} held-out training texts"
    )
    kept = distilled.kept
    if kept is None:
        typer.echo(f"the stack is no better than {to} alone")
    else:
        typer.echo(f"keeps {kept:.0%} of what the stack gains over {to} alone")
