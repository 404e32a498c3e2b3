"""The flags that several commands share, declared once.

A command takes a group of flags as one argument, a dataclass with one field per flag. `with_flags` shows Typer the
fields of the group as options of the command:

    @with_flags
    def train(data: NamedDataFlags, out: Out, method: MethodFlags, flags: RunFlags) -> None: ...
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, cached_property, partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_type_hints

import typer

from longtail.cli.lines import LINES
from longtail.cli.screen import Screen
from longtail.errors import ConfigError
from longtail.run.processes import is_main_process

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset
    from longtail.methods.base import Method
    from longtail.run.engine import Engine
    from longtail.run.progress import Progress
    from longtail.run.run import Run

DATA_PANEL = "How data are read"
RUN_PANEL = "How the command runs"
_PANELS = (None, DATA_PANEL, RUN_PANEL)
_FLAG_OF: dict[str, str] = {}
"""The flag of each parameter of the commands."""
_READ = ("vocabulary.", "on_bad_utf8", "delimiter")
"""Begin the options that are given with --read."""
_OPTION = re.compile(r"`([a-z_][\w.*]*)((?:=|, | or )[^`]*|)`")
"""An option, or several, as the library writes them in errors and notes."""


def option(help: str, metavar: str | None = None, *names: str, panel: str | None = None) -> Any:
    """Describe an option to Typer.

    Args:
        help: What the option does.
        metavar: How its value is shown in the help; none for flags without a value.
        names: Its flags, if they are not made from the parameter's name.
        panel: The title above the options of its kind.
    """
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


data_option = partial(option, panel=DATA_PANEL)
run_option = partial(option, panel=RUN_PANEL)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")]
Format = Annotated[
    str | None,
    data_option(
        "The format, if files do not show it: folder, table, pecos, rawtext, xmc, svmlight, fasttext, xbert, reviews.",
        "NAME",
    ),
]
TextColumn = Annotated[str | None, data_option("The column that holds the text.", "NAME")]
Read = Annotated[
    list[str] | None,
    data_option(
        "Another option of the format (delimiter=|, on_bad_utf8=replace) or of the vocabulary "
        "(vocabulary.language=de, vocabulary.ids=notation). May be repeated.",
        "OPTION=VALUE",
    ),
]
MethodName = Annotated[
    str, option("A method, or a preset of it (longtail methods).", "NAME", "--method", "--preset", "-m")
]
Settings = Annotated[
    list[str] | None, option("An option, such as ranker.threshold=0.05. May be repeated.", "OPTION=VALUE", "--set")
]
Fields = Annotated[str | None, option("Fields of a text to read, such as title,text.", "NAMES")]
TailWeight = Annotated[
    float | None,
    option(
        "Move rare labels up: scores are multiplied by a label's weight in PSP@k to the power T. 0 does nothing, 1 "
        "weights as PSP@k does; by default the model's own option.",
        "T",
        "--tail-weight",
    ),
]
Threshold = Annotated[
    str | None,
    option(
        "Leave out labels that score less; auto, for models with calibrated scores, is the best for micro-F1.", "SCORE"
    ),
]
TrainSplit = Annotated[str, option("The part of the data to train on.", "NAME", "--split")]
Resume = Annotated[bool, run_option("Continue a run that was killed.", None, "--resume")]
Verify = Annotated[
    bool,
    run_option("Compare the model's files with their checksums, even if that was done before.", None, "--verify"),
]
Force = Annotated[bool, run_option("Train even if it may not fit.", None, "--force")]
Threads = Annotated[int | None, run_option("Threads to use; all cores by default.", "N")]
Quiet = Annotated[bool, run_option("No progress and no notes.", None, "--quiet", "-q")]
Json = Annotated[bool, run_option("Print the result as JSON.", None, "--json")]


@dataclass(frozen=True)
class DataFlags:
    """A data set, and how it is read."""

    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A folder, a file, or the name of a bundled data set (debtags-sample)."),
    ]
    format: Format = None
    text_column: TextColumn = None
    label_column: Annotated[str | None, data_option("The column that holds the labels.", "NAME")] = None
    label_separator: Annotated[str | None, data_option("The separator between two labels in a cell.", "TEXT")] = None
    read: Read = None

    def load(self, model: Method, progress: Progress) -> Dataset:
        """Load the data for `model`."""
        from longtail.training import load_for

        return load_for(model, self.arguments(), progress)

    def arguments(self) -> dict[str, Any]:
        """Return arguments of `load_dataset` by name, as plain data."""
        from longtail.data.load import load_dataset

        columns = {name: getattr(self, name) for name in ("text_column", "label_column", "label_separator")}
        return {"source": self.data, "format": self.format, **read_options(load_dataset, columns, self.read)}


@dataclass(frozen=True)
class NamedDataFlags(DataFlags):
    """A data set whose labels may be named by a vocabulary."""

    vocabulary: Annotated[Path | None, data_option("Label names, tab-separated or SKOS.", "FILE", "--vocabulary")] = (
        None
    )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `load_dataset` by name, with those of the vocabulary."""
        arguments = super().arguments()
        path = str(self.vocabulary) if self.vocabulary else None
        vocabulary = {"path": path, **arguments.get("vocabulary", {})}
        return arguments | {"vocabulary": vocabulary if any(vocabulary.values()) else None}


@dataclass(frozen=True)
class ModelFlags:
    """A trained model, and how it is opened."""

    model: Model
    verify: Verify = False

    def open(self, progress: Progress, precision: str = "auto") -> Method:
        """Return the model."""
        from longtail.methods import load_model

        with progress.step("open the model"):
            return load_model(self.model, verify=self.verify or None, precision=cast(Any, precision))


@dataclass(frozen=True)
class PrecisionFlags(ModelFlags):
    """A trained model that predicts with a precision of its own."""

    precision: Annotated[
        str,
        run_option(
            "Precision of networks: fp32, as trained; bf16; int8, for CPUs. auto is bf16 on a GPU and fp32 on a CPU.",
            "NAME",
            "--precision",
        ),
    ] = "auto"


@dataclass(frozen=True)
class MethodFlags:
    """A method and its options."""

    method: MethodName = "linear"
    config: Annotated[Path | None, option("Options in a TOML file (longtail config show).", "FILE")] = None
    settings: Settings = None
    fields: Fields = None
    seed: Annotated[int | None, option("The seed of everything random.", "N")] = None
    budget: Annotated[
        str | None,
        option("How long method auto may take, such as 90s, 10m or 1h30m; none is no limit.", "TIME", "--budget"),
    ] = None

    def create(self, **options: Any) -> Method:
        """Return the untrained method; further `options` that are not None win over the settings of the flags."""
        from longtail.methods import create_method

        options["budget"] = self.budget
        given = {name: value for name, value in options.items() if value is not None}
        settings = [f"{name}={json.dumps(value)}" for name, value in given.items()]
        if self.budget is not None and "budget" not in create_method(self.method).options_class.model_fields:
            raise ConfigError(f"`budget` is for methods that keep to a time, got {self.method}; use `method=auto`")
        return create_method(
            self.method,
            config=self.config,
            settings=[*(self.settings or ()), *settings],
            fields=self.fields,
            seed=self.seed,
        )


@dataclass(frozen=True)
class RunFlags:
    """How a command runs, and what it prints."""

    threads: Threads = None
    quiet: Quiet = False
    as_json: Json = False

    @cached_property
    def screen(self) -> Screen:
        """Where the command writes."""
        return Screen(self.quiet)

    @cached_property
    def run(self) -> Run:
        """How long work is carried out."""
        from longtail.run.run import Run

        return Run(self._engine(), self.screen.progress)

    def _engine(self) -> Engine:
        """Return what carries out jobs; refuses a number of threads that cannot be."""
        from longtail.run.local import LocalEngine

        return LocalEngine(self.threads)


@dataclass(frozen=True)
class EngineFlags(RunFlags):
    """How a command runs that may send its work to other machines."""

    engine: Annotated[
        str,
        run_option(
            "Who does the work: local, the threads of this process; ray, the cluster of RAY_ADDRESS, or one that is "
            "started on this machine; ray://HOST:PORT, the cluster there, which this machine belongs to. The result is "
            "the same.",
            "NAME",
            "--engine",
        ),
    ] = "local"
    storage: Annotated[
        Path | None,
        run_option("With --engine ray, a folder that all machines see, for data that jobs share.", "FOLDER"),
    ] = None

    def _engine(self) -> Engine:
        from longtail.run.engines import engine_of

        kind, _, address = self.engine.partition("://")
        return engine_of({"kind": kind, "threads": self.threads, "address": address, "storage": self.storage})


def with_flags(command: Callable[..., None], *, lasting: bool = False) -> Callable[..., None]:
    """Return `command` with the fields of each dataclass among its parameters as parameters of their own.

    A `lasting` command runs until it is stopped: nothing is said of the time that it takes.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
    parameters.sort(key=lambda parameter: _PANELS.index(_info(parameter).rich_help_panel))
    for parameter in parameters:
        names = [name for name in (_info(parameter).default, *(_info(parameter).param_decls or ())) if name is not ...]
        _FLAG_OF[parameter.name] = names[0] if names else f"--{parameter.name.replace('_', '-')}"

    @wraps(command)
    def expanded(**values: Any) -> None:
        piped = not lasting and is_main_process() and not (values.get("quiet") or sys.stderr.isatty())
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        with LINES.command(command.__name__.replace("_", " ")) if piped else nullcontext():
            command(**values)

    expanded.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def read_options(read: Callable[..., Any], columns: dict[str, Any], settings: list[str] | None) -> dict[str, Any]:
    """Return options of formats that flags and --read gave, for the function that reads data with them."""
    from longtail.settings import with_settings

    options = with_settings({name: value for name, value in columns.items() if value is not None}, settings or ())
    others = signature(read).parameters.keys() - {"vocabulary"}
    wrong = next((name for name in options if name in others), None)
    if wrong is not None:
        raise ConfigError(f"--read must be an option of the format or of the vocabulary, got '{wrong}'")
    if not isinstance(options.get("vocabulary", {}), dict):
        raise ConfigError(
            "--read must name an option of the vocabulary, such as vocabulary.language=de, got 'vocabulary'"
        )
    return options


def threshold_of(text: str | None) -> float | Literal["auto"] | None:
    """Return the value of --threshold."""
    if text is None or text == "auto":
        return cast(Literal["auto"] | None, text)
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"--threshold must be a number or auto, got '{text}'") from error


def in_flags(text: str) -> str:
    """Return a text of the library with the options that it names in backticks written as flags.

    `resume` becomes --resume, `split=dev` becomes --split dev; `ranker.threshold` and `vocabulary.ids`, which are no
    flags, become --set ranker.threshold and --read vocabulary.ids.
    """

    def flag(match: re.Match[str]) -> str:
        name, rest = match.groups()
        if name not in _FLAG_OF:
            return f"{'--read' if name.startswith(_READ) else '--set'} {name}{rest}"
        return _FLAG_OF[name] + rest.replace("=", " ", 1)

    return _OPTION.sub(flag, text)


@cache
def _parameters_of(group: Any) -> tuple[Parameter, ...]:
    """Return the fields of a group of flags as parameters."""
    hints = get_type_hints(group, include_extras=True)
    defaults = {field.name: Parameter.empty if field.default is MISSING else field.default for field in fields(group)}
    return tuple(
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in defaults.items()
    )


def _info(parameter: Parameter) -> Any:
    """Return the annotation of a parameter, for Typer."""
    return get_args(parameter.annotation)[1]
