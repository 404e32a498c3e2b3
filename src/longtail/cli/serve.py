"""`longtail serve`: trained models behind HTTP."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.explain import examples_of
from longtail.cli.flags import Quiet, Settings, Threads, option
from longtail.cli.screen import Screen
from longtail.errors import ConfigError

if TYPE_CHECKING:
    from longtail.serve.settings import ServeSettings

Models = Annotated[
    list[str],
    typer.Argument(metavar="MODEL...", help="Folders of trained models; NAME=FOLDER gives one another name."),
]
Host = Annotated[str, option("The address to listen at; 0.0.0.0 is all of this machine.", "ADDRESS")]
Port = Annotated[int, option("The port to listen at; 0 takes a free one.", "N")]
Workers = Annotated[int, option("Processes that answer; they share the models' weights.", "N")]
Tokens = Annotated[
    Path | None,
    option("A file of bearer tokens: lines of role (tag, review or admin), name and token.", "FILE"),
]
Examples = Annotated[
    str | None,
    option("The data that the first model was trained on: explanations show the nearest texts of it.", "DATA"),
]
Reviews = Annotated[
    str | None,
    option(
        "Where decisions of reviewers are kept: a file, or postgresql://user@host/database (longtail review).",
        "STORE",
        "--reviews",
        "-r",
    ),
]
NoPage = Annotated[bool, option("Do not serve the page for people at /.", None, "--no-page")]


def serve(
    models: Models,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    tokens: Tokens = None,
    examples: Examples = None,
    reviews: Reviews = None,
    no_page: NoPage = False,
    settings: Settings = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Serve trained models over HTTP until Ctrl-C or SIGTERM."""
    from longtail.review.page import desk_routers, page
    from longtail.run.local import LocalEngine, available_cores
    from longtail.run.run import Run
    from longtail.serve.access import Access
    from longtail.serve.app import create_app
    from longtail.serve.models import Models as OpenModels
    from longtail.serve.process import SOCKET, listening, run_server
    from longtail.serve.supervisor import Supervisor

    if workers < 1:
        raise ConfigError(f"`workers` must be at least 1, got {workers}")
    if not 0 <= port < 1 << 16:
        raise ConfigError(f"`port` must be from 0 to 65,535, got {port}")
    folders = _by_name(models)
    limits = _settings(tokens, settings, host)
    Access(limits.tokens)  # raises before anything is opened, as the next line does
    routers = desk_routers(reviews)
    screen = Screen(quiet)
    is_worker = SOCKET in os.environ
    listener = listening(host, port)
    if not is_worker:
        _say_where(screen, listener, folders, limits)
    if workers > 1 and not is_worker:
        _check_models(folders)
        Supervisor([sys.executable, "-m", "longtail", *sys.argv[1:]], workers, listener, limits.drain_s).run()
        return
    run = Run(LocalEngine(threads or max(1, available_cores() // workers)))
    opened = OpenModels.open(folders, run)
    near = None if examples is None else examples_of(opened.default.method, examples, screen)
    mounts = {} if no_page else {"/": page()}
    app = create_app(opened, limits, examples=near, routers=routers, mounts=mounts)
    if not is_worker:
        screen.note("ready")
    run_server(app, listener)


def _by_name(models: list[str]) -> dict[str, str]:
    """Return the folders by the names that they are served under."""
    folders: dict[str, str] = {}
    for given in models:
        name, _, folder = given.partition("=")
        if not folder or not name or Path(given).exists():
            name, folder = Path(given).absolute().name, given
        if name in folders:
            raise ConfigError(f"models must have different names, got '{name}' twice; write NAME=FOLDER")
        folders[name] = folder
    return folders


def _settings(tokens: Path | None, given: list[str] | None, host: str) -> ServeSettings:
    from longtail.serve.settings import ServeSettings
    from longtail.settings import with_settings

    values: dict[str, Any] = {
        "tokens": str(tokens) if tokens else None,
        "local_only": tokens is None and _is_loopback(host),
    }
    return ServeSettings.of(with_settings(values, given or ()), source="serve")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _say_where(screen: Screen, listener: socket.socket, folders: dict[str, str], limits: ServeSettings) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    if limits.tokens is None and not _is_loopback(host):
        screen.warn("everybody who reaches this machine may use the server; --tokens FILE asks for tokens")
    screen.note(f"http://{shown}:{port} serves {', '.join(folders)}; http://{shown}:{port}/docs describes it")


def _check_models(folders: dict[str, str]) -> None:
    """Raise here if a model cannot be opened, and not in every worker."""
    from longtail.methods.base import MODEL
    from longtail.persist import Folder

    for folder in folders.values():
        Folder(folder, MODEL)
