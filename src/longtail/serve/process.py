"""One process that answers: uvicorn with our limits, reloading at SIGHUP, ending what it has begun at SIGTERM.

with listening("127.0.0.1", 8000) as listener:
    run_server(app, listener)
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from longtail.errors import ConfigError, LongtailError
from longtail.serve.about import SUPERVISOR
from longtail.serve.problems import LOG
from longtail.serve.protocol import LimitedProtocol
from longtail.serve.service import Service

SOCKET = "LONGTAIL_SERVE_SOCKET"
"""In workers: the descriptor of the listening socket that the supervisor has opened."""
_KEEP_ALIVE_S = 75
_BACKLOG = 2048
_SWITCH_S = 0.0005
"""How long a thread may hold the interpreter while another one waits: the event loop must not wait for batches."""


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; in a worker, that of the supervisor."""
    if SOCKET in os.environ:
        return socket.socket(fileno=int(os.environ[SOCKET]))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot listen at {host}, port {port}: {reason}; choose another `host` or `port`") from error
    return listener


def run_server(app: FastAPI, listener: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT; then end those that have begun."""
    service: Service = app.state.service
    _allow_many_connections()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # its warnings are about what clients send
    sys.setswitchinterval(_SWITCH_S)
    # The garbage collector would look through everything that was imported and opened now and then: 80 ms without an
    # answer. None of it is garbage later: models that are replaced have no cycles.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=service.settings.drain_s,
    )
    _Server(config, service).run([listener])


class _Server(uvicorn.Server):
    """A server that also listens to SIGHUP, and ends without the supervisor that started it."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service
        self._supervisor = os.environ.get(SUPERVISOR)
        self._reloading: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals inside of the event loop; the process ends with 0 then, and not by the signal."""
        if not hasattr(signal, "SIGHUP"):
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        self.service.is_stopping = True
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end, ten times a second."""
        orphaned = self._supervisor is not None and str(os.getppid()) != self._supervisor
        return await super().on_tick(counter) or orphaned

    def _begin_reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)

    async def _reload(self) -> None:
        try:
            await self.service.reload()
        except LongtailError as error:
            LOG.warning("nothing was reloaded: %s", error)


def _allow_many_connections() -> None:
    """Raise the limit of open files to what the system allows."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
