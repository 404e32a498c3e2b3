"""What happens to every request before and after its route: who may ask from where, security headers, measuring.

Browsers send requests in the name of whoever sits before them, from any page that they show. So requests that change
something must come from a page of this server, and on a loopback address they must be addressed to a local name:
else a page elsewhere could give a name of its own our address.
"""

from __future__ import annotations

import re
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longtail.serve.problems import problem_response
from longtail.serve.service import Service

_LOCAL = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_READING = {"GET", "HEAD", "OPTIONS"}
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'",
    ),
)
"""Headers of every answer. Pages get scripts and styles from this server alone, and none inside of them."""
_NO_STORE = (b"cache-control", b"no-store")


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                headers += [header for header in HEADERS if header[0] not in names]
                if b"cache-control" not in names and b"etag" not in names:
                    headers.append(_NO_STORE)
                message = {**message, "headers": headers}
            await send(message)

        fault = self._fault(scope)
        try:
            if fault:
                await problem_response(403, fault)(scope, receive, guarded)
            else:
                await self.app(scope, receive, guarded)
        finally:
            self._count(scope, status, perf_counter() - start)

    def _fault(self, scope: Scope) -> str:
        """Return why a request is refused, or nothing."""
        host = origin = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if self.service.settings.local_only and not _LOCAL.fullmatch(host):
            return "this server answers requests to localhost only; start it with --host to be reached by other names"
        if origin and scope["method"] not in _READING and origin.partition(b"://")[2] != host:
            return "requests from pages of other sites are refused"
        return ""

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "other")
        self.service.metrics.request(scope["method"] if path != "other" else "any", path, status, seconds)
