"""`longtail export`, `push` and `pull`: models as ONNX graphs, and to and from the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.card import Languages, Licence, ReportFolder
from longtail.cli.flags import Model, ModelFlags, NamedDataFlags, Quiet, RunFlags, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.units import in_bytes

if TYPE_CHECKING:
    from longtail.export.onnx import OnnxExport

OnnxFolder = Annotated[
    Path, option("The folder of the export; an older export there is replaced at the end.", "DIR", "--onnx")
]
SampleSplit = Annotated[str | None, option("The part of DATA to compare on; by default dev.", "NAME", "--split")]
LabelsPerText = Annotated[int, option("How many labels the graph gives each text.", "N", "--labels-per-text")]
Int8 = Annotated[
    bool,
    option(
        "Write weights in one byte each, and print what that costs on DATA, whose labels are known.", None, "--int8"
    ),
]
Repository = Annotated[str, typer.Argument(metavar="REPO", help="A model repository of the hub, such as name/model.")]
Destination = Annotated[Path, typer.Argument(metavar="OUT", help="The folder of the model; an older one is replaced.")]
Private = Annotated[bool, option("Make the repository private if it is new.", None, "--private")]
Branch = Annotated[str, option("The branch that gets the model.", "NAME", "--branch")]
Revision = Annotated[
    str, option("A commit, tag or branch; a commit gives the same model for ever.", "NAME", "--revision")
]


@dataclass(frozen=True)
class SampleFlags(NamedDataFlags):
    """Texts that an export is compared on, if there are some."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="[DATA]",
            help="Texts that scores are compared on, as for longtail evaluate; by default made of known words.",
        ),
    ] = ""


@with_flags
def export(
    model: ModelFlags,
    sample: SampleFlags,
    onnx: OnnxFolder,
    flags: RunFlags,
    split: SampleSplit = None,
    int8: Int8 = False,
    labels_per_text: LabelsPerText = 50,
) -> None:
    """Write a model of one network as an ONNX graph with tokeniser, labels and a runner that needs no longtail.

    Refused if scores differ by more than 0.0001 from the model's, or the five best labels beyond such ties.
    """
    from longtail.evaluation import choose_split
    from longtail.export.onnx import export_onnx

    tagger = model.open(flags.screen.progress)
    texts = None
    if sample.data:
        _, texts = choose_split(tagger, sample.load(tagger, flags.screen.progress), split)
    written = export_onnx(tagger, onnx, texts, labels_per_text=labels_per_text, int8=int8, run=flags.run)
    if flags.as_json:
        write_json(written.plain())
    else:
        _show(written)


@with_flags
def push(
    model: Model,
    repository: Repository,
    report: ReportFolder = None,
    language: Languages = None,
    license: Licence = None,
    branch: Branch = "main",
    private: Private = False,
    quiet: Quiet = False,
) -> None:
    """Upload a saved model to the Hugging Face hub, with a model card, in one commit."""
    from longtail.export.hub import push as push_model
    from longtail.report.card import load_report

    facts = None if report is None else load_report(report)
    with Screen(quiet).progress.step("upload"):
        pushed = push_model(
            model, repository, report=facts, languages=language or (), licence=license, branch=branch, private=private
        )
    typer.echo(f"{pushed.address}\nlongtail pull {pushed.repository} OUT --revision {pushed.revision}")


@with_flags
def pull(repository: Repository, out: Destination, revision: Revision = "main", quiet: Quiet = False) -> None:
    """Download a model from the Hugging Face hub; its files are compared with their checksums before OUT is touched."""
    from longtail.export.hub import pull as pull_model

    with Screen(quiet).progress.step("download"):
        pulled = pull_model(repository, out, revision=revision)
    typer.echo(f"{out}: {pulled.repository} at {pulled.revision}")


def _show(written: OnnxExport) -> None:
    """Print where the export lies, how near it is to its model, and what 8-bit weights cost."""
    agreement, int8 = written.agreement, written.int8
    typer.echo(
        f"{written.path}: the five best scores of {agreement.n_texts:,} texts differ by at most "
        f"{agreement.largest_difference:.1g} from the model's"
    )
    if int8 is not None:
        typer.echo(
            f"int8: nDCG@5 {100 * int8.ndcg_before:.2f} before, {100 * int8.ndcg_after:.2f} after "
            f"({-int8.loss:+.2f} points) on {int8.n_texts:,} texts; {int8.same_lists:.1%} keep their five best labels; "
            f"{in_bytes(int8.bytes_before)} before, {in_bytes(int8.bytes_after)} after"
        )
