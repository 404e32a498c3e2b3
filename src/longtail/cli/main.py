"""The table of commands, and the place where errors become one line and an exit code.

0  done        2  bad input, nothing was done        130  interrupted
1  data check found faults, plan found that it will not fit, or a run of compare failed
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from longtail.cli import (
    card,
    compare,
    data,
    demo,
    distil,
    evaluate,
    explain,
    export,
    label,
    plan,
    predict,
    reproduce,
    review,
    serve,
    show,
    train,
    tune,
)
from longtail.cli.flags import in_flags, with_flags
from longtail.cli.lines import say
from longtail.cli.terminal import safe_streams
from longtail.errors import ConfigError, LongtailError
from longtail.run.log import LOG

LONGEST_MESSAGE = 2000
"""In characters; a message that repeats a huge value of the user's says less than its start."""

app = typer.Typer(
    name="longtail",
    help="Tag texts with the right few labels out of thousands to millions.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("plan")(plan.plan)
app.command("tune")(tune.tune)
app.command("train")(train.train)
app.command("distil")(distil.distil)
app.command("predict")(predict.predict)
app.command("serve")(with_flags(serve.serve, lasting=True))
app.command("explain")(explain.explain)
app.command("evaluate")(evaluate.evaluate)
app.command("card")(card.card)
app.command("export")(export.export)
app.command("push")(export.push)
app.command("pull")(export.pull)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("info")(show.info)
app.command("methods")(show.methods)

config_app = typer.Typer(help="Options of the methods.")
config_app.command("show")(show.config_show)
config_app.command("check")(show.config_check)
app.add_typer(config_app, name="config")

label_app = typer.Typer(help="Change the labels of a saved model, without training.")
label_app.command("add")(label.add)
label_app.command("rename")(label.rename)
label_app.command("merge")(label.merge)
label_app.command("retire")(label.retire)
label_app.command("restore")(label.restore)
label_app.command("undo")(label.undo)
label_app.command("history")(label.history)
label_app.command("sync")(label.sync)
app.add_typer(label_app, name="label")

data_app = typer.Typer(help="Data sets: look at them, convert them.")
data_app.command("check")(data.check)
data_app.command("convert")(data.convert)
app.add_typer(data_app, name="data")

review_app = typer.Typer(help="Texts for people to review, and what they decided.")
review_app.command("add")(review.add)
review_app.command("list")(review.show_queues)
review_app.command("stats")(review.stats)
review_app.command("export")(review.export)
app.add_typer(review_app, name="review")


def _version(asked: bool) -> None:
    if asked:
        import longtail

        typer.echo(f"longtail {longtail.__version__}")
        raise typer.Exit


@app.callback()
def longtail(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tag texts with the right few labels out of thousands to millions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    notes = _Notes()
    LOG.addHandler(notes)
    LOG.setLevel(logging.INFO)
    try:
        with safe_streams():
            return _run(given)
    finally:
        LOG.removeHandler(notes)
        LOG.setLevel(logging.NOTSET)


def _run(given: list[str]) -> int:
    try:
        _check_unicode(given)
        code = app(given or ["--help"], prog_name="longtail", standalone_mode=False)
        sys.stdout.flush()
    except LongtailError as error:
        return _fail(in_flags(str(error)))
    except typer.TyperException as error:
        return _fail(_usage(error))
    except typer.Abort:
        return _interrupted()
    except MemoryError:
        return _fail("the machine's memory is full; use fewer features, or a machine with more")
    except BrokenPipeError:
        return 1  # the reader of the pipe is gone
    except OSError as error:  # only streams have no name, and the library reports files
        return _fail(f"cannot use {error.filename or 'standard output'}: {error.strerror or error}")
    finally:
        _give_up_output()
    if code == 130:
        return _interrupted()
    return code if isinstance(code, int) else 0


def _check_unicode(given: list[str]) -> None:
    """Raise if an argument is bytes that are not UTF-8: Python passes them on as characters that no file can hold."""
    for argument in given:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"arguments must be UTF-8, got {argument!a}; put texts into a file") from error


def _give_up_output() -> None:
    """Close standard output if it does not take what is left: Python would try again at the end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            sys.stdout.close()


class _Notes(logging.Handler):
    """What the library has to say, as notes on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        mark = "note: " if record.levelno >= logging.WARNING else ""
        say(mark + in_flags(record.getMessage()))


def _usage(error: typer.TyperException) -> str:
    """Say what was wrong with the command, and where its help is."""
    context = getattr(error, "ctx", None)
    words = " ".join(error.format_message().split()).rstrip(".")
    return f"{words} ({context.command_path if context else 'longtail'} --help)"


def _fail(message: str) -> int:
    words = " ".join(message.split())
    shown = words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]} …"
    with suppress(OSError):  # standard error may be full too
        typer.echo(f"longtail: {shown}", err=True)
    return 2


def _interrupted() -> int:
    typer.echo("longtail: interrupted", err=True)
    return 130


if __name__ == "__main__":
    sys.exit(main())
