"""HTTP connections that cannot be held open by sending little: heads of requests have a time limit and a size limit."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longtail.serve.problems import MEDIA_TYPE, problem_response
from longtail.serve.settings import ServeSettings

_LONGEST_HEAD = 64 << 10
_PHRASES = {400: b"Bad Request", 503: b"Service Unavailable"}


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    @property
    def settings(self) -> ServeSettings:
        """The limits of the application."""
        app: Any = self.config.app
        settings: ServeSettings = app.state.service.settings
        return settings

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse a connection if there are too many, else wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > self.settings.max_connections:
            self._refuse(503, "too many connections are open; try again later")
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time limit."""
        self._end_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to count the time and the bytes of the head of a request."""
        super().on_message_begin()
        self._head_bytes = 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """Read the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header."""
        self._count(len(name) + len(value) + 4)  # ": " and the end of the line
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._end_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(400, "the request must be HTTP/1.1 with a head of at most 64 KiB")

    def _refuse(self, status: int, detail: str) -> None:
        body = bytes(problem_response(status, detail).body)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\n" % (status, _PHRASES[status], MEDIA_TYPE.encode())
        self.transport.write(b"%scontent-length: %d\r\nconnection: close\r\n\r\n%s" % (head, len(body), body))
        self.transport.close()

    def _count(self, n_bytes: int) -> None:
        self._head_bytes += n_bytes
        if self._head_bytes > _LONGEST_HEAD:
            raise ValueError("the head of a request is too long")  # the parser turns it into an answer

    def _await_head(self) -> None:
        self._end_waiting()
        self._timer = self.loop.call_later(self.settings.read_timeout_s, self.transport.close)

    def _end_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
