"""Flags that commands share, and options that the library names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import longtail.cli.main  # noqa: F401  (all flags are known once the commands are)
from longtail.cli.flags import DataFlags, NamedDataFlags, in_flags, with_flags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the same call with `resume` goes on", "the same call with --resume goes on"),
        ("train with `hold_out` or name a `split`", "train with --hold-out or name a --split"),
        ("name the data set with `named`", "name the data set with --as"),
        ("use `method=xbert`", "use --method xbert"),
        ("smaller with `ranker.threshold, n_seeds or a.*.b`", "smaller with --set ranker.threshold, n_seeds or a.*.b"),
        ("choose with `vocabulary.language`", "choose with --read vocabulary.language"),
        ("one is set with `settings`", "one is set with --set"),
        ("must be `word 0.1 -0.2 ...`", "must be `word 0.1 -0.2 ...`"),
    ],
)
def test_options_of_the_library_are_shown_as_flags(text: str, expected: str) -> None:
    assert in_flags(text) == expected


def test_a_command_takes_a_group_of_flags_as_one_argument() -> None:
    @dataclass(frozen=True)
    class Size:
        width: Annotated[int, typer.Option(metavar="N")]
        height: Annotated[int, typer.Option(metavar="N")] = 3

    def show(name: Annotated[str, typer.Argument()], size: Size) -> None:
        typer.echo(f"{name}: {size.width} by {size.height}")

    show.__annotations__ |= {"size": Size, "return": None}
    app = typer.Typer()
    app.command()(with_flags(show))
    assert CliRunner().invoke(app, ["box", "--width", "2"]).output == "box: 2 by 3\n"
    assert CliRunner().invoke(app, ["box"]).exit_code == 2


def test_flags_become_arguments_that_read_a_data_set_alike_in_another_process() -> None:
    plain = DataFlags("a.csv", text_column="body", read=["delimiter=|", "quoted=false"])
    assert plain.arguments() == {
        "source": "a.csv",
        "format": None,
        "text_column": "body",
        "delimiter": "|",
        "quoted": False,
    }
    named = NamedDataFlags("a.csv", vocabulary=Path("names.ttl"), read=["vocabulary.language=de"])
    assert named.arguments()["vocabulary"] == {"path": "names.ttl", "language": "de"}
    assert NamedDataFlags("a.csv").arguments()["vocabulary"] is None
