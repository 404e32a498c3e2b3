"""Routes that must be fast are answered without the framework around them.

FastAPI finds the route of a request, solves its dependencies and keeps stacks of what must be closed after it, which
takes longer than everything else that `POST /v1/tag` does beside tagging. Endpoints that take the request alone and
return a response need none of that, so they are called here. They stay routes, for the OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from longtail.errors import LongtailError
from longtail.serve.problems import Problem, problem_response


class Direct:
    """An ASGI application that answers requests to some routes, and hands all others to `app`."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self.app = app
        self.routes = {
            (method, route.path): route
            for route in routes
            if isinstance(route, APIRoute)
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        route = self.routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        try:
            response = await route.endpoint(Request(scope, receive))
        except Problem as problem:
            response = problem.response()
        except LongtailError as error:
            response = problem_response(422, str(error))
        await response(scope, receive, send)
