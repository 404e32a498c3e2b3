"""`longtail label`: change the labels of a saved model, without training."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import Json, Quiet, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError

if TYPE_CHECKING:
    from longtail.label_editor import LabelEditor
    from longtail.labels.edits import Action, LabelEdit

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")]
Label = Annotated[str, typer.Argument(metavar="LABEL", help="Id or name of a label.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name.")]
Into = Annotated[str, typer.Argument(metavar="INTO", help="Id or name of the label that is suggested instead.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The new release of the vocabulary: .ttl, .rdf or .nt.")]
Person = Annotated[str, option("Who makes the change; by default the user of this computer.", "NAME")]
Id = Annotated[str, option("Id of the new label; by default made from its name.", "ID", "--id")]
Examples = Annotated[
    list[str] | None, option("A text that has the label. Give the option several times.", "TEXT", "--example")
]
ExamplesFile = Annotated[Path | None, option("Texts that have the label, one per line.", "FILE", "--examples")]
Parents = Annotated[list[str] | None, option("Id or name of a broader label.", "LABEL", "--parent")]
Others = Annotated[list[str] | None, option("Another name.", "NAME", "--also")]
Validation = Annotated[
    Path | None, option("Texts with labels: tell how many right labels the new one pushes out.", "DATA", "--data")
]
Split = Annotated[str, option("The part of --data to look at.", "NAME", "--split")]
Language = Annotated[str, option("Language of the names.", "CODE")]
Ids = Annotated[str, option("How the model writes ids: uri, prefixed, local or notation.", "KIND")]


@with_flags
def add(
    model: Model,
    name: Name,
    examples: Examples = None,
    examples_file: ExamplesFile = None,
    label_id: Id = "",
    parents: Parents = None,
    others: Others = None,
    data: Validation = None,
    split: Split = "dev",
    person: Person = "",
    quiet: Quiet = False,
) -> None:
    """Add a label from its name and a few example texts; all other scores stay as they are."""
    editor = _editor(model, person)
    texts = [*(examples or ()), *_lines(examples_file)]
    edit = editor.add(name, texts, label_id=label_id, parents=parents or (), alternatives=others or ())
    typer.echo(f"added '{edit.name}' ({edit.label}) with {len(texts)} examples")
    if data is None:
        return
    from longtail.data.load import load_dataset
    from longtail.run.run import Run

    screen = Screen(quiet)
    loaded = load_dataset(data, progress=screen.progress)
    if split not in loaded.splits:
        raise ConfigError(f"--split must be one of {', '.join(loaded.splits)}, got '{split}'")
    harm = editor.harm(loaded.splits[split], Run.of(progress=screen.progress))
    typer.echo(
        f"of {harm.n_right_before:,} right labels among the first five of {harm.n_texts:,} texts, {harm.n_displaced:,} "
        f"are pushed out; added labels are among them {harm.n_new:,} times"
    )


@with_flags
def rename(model: Model, label: Label, name: Name, person: Person = "") -> None:
    """Give a label another name."""
    _say(_editor(model, person).rename(label, name))


@with_flags
def merge(model: Model, label: Label, into: Into, person: Person = "") -> None:
    """Suggest INTO wherever LABEL would be suggested."""
    _say(_editor(model, person).merge(label, into))


@with_flags
def retire(model: Model, label: Label, person: Person = "") -> None:
    """No longer suggest a label."""
    _say(_editor(model, person).retire(label))


@with_flags
def restore(model: Model, label: Label, person: Person = "") -> None:
    """Suggest a label again that was retired or merged."""
    _say(_editor(model, person).restore(label))


@with_flags
def undo(model: Model, person: Person = "") -> None:
    """Undo the last change that is in force; again, the one before it."""
    edit = _editor(model, person).undo()
    typer.echo(f"undone: {_line(edit)}")


@with_flags
def history(model: Model, as_json: Json = False) -> None:
    """List all changes since the model was trained."""
    edits = _editor(model, "").history
    if as_json:
        write_json([edit.plain() for edit in edits])
        return
    for edit in edits:
        typer.echo("  ".join(part for part in (edit.time, edit.person, _line(edit)) if part))
    if not edits:
        typer.echo("no label was changed since the model was trained")


@with_flags
def sync(model: Model, file: File, language: Language = "en", ids: Ids = "uri", person: Person = "") -> None:
    """Change the labels to those of a new release of a SKOS vocabulary."""
    from longtail.data.skos import read_release

    if ids not in ("uri", "prefixed", "local", "notation"):
        raise ConfigError(f"--ids must be uri, prefixed, local or notation, got '{ids}'")
    editor = _editor(model, person)
    report = editor.sync(read_release(file, language, ids))  # type: ignore[arg-type]
    words: dict[Action, str] = {"add": "added", "rename": "renamed", "merge": "merged", "retire": "retired"}
    typer.echo(", ".join(f"{report.count(action):,} {word}" for action, word in words.items()))
    if report.missing:
        some = ", ".join(report.missing[:3]) + (", …" if len(report.missing) > 3 else "")
        typer.echo(f"{len(report.missing):,} labels are not in {file.name} and stay as they are: {some}")


def _editor(model: Path, person: str) -> LabelEditor:
    from longtail.label_editor import LabelEditor

    return LabelEditor(model, person or _user())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def _lines(file: Path | None) -> list[str]:
    from longtail.data.lines import read_lines

    blocks = [] if file is None else read_lines(file)
    return [line for block in blocks for line in block.lines.to_pylist() if line.strip()]


def _say(edit: LabelEdit) -> None:
    typer.echo(_line(edit))


def _line(edit: LabelEdit) -> str:
    """Return a change in words."""
    if edit.action == "add":
        return f"added '{edit.name}' ({edit.label}) with {len(edit.examples)} examples"
    words = {
        "rename": f"renamed to '{edit.name}'",
        "merge": f"merged into {edit.into}",
        "undo": "undid the last change",
    }
    done = words.get(edit.action, {"retire": "retired", "restore": "restored"}.get(edit.action, ""))
    return f"{edit.label}: {done}" if edit.label else done
