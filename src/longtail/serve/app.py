"""The application: routes, errors as problems, roles, and what others mount on it.

app = create_app(Models.open({"books": "my-model"}), ServeSettings(tokens="tokens.txt"))
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from longtail.explain import ExampleTexts
from longtail.serve import about, annif, docs_page, edit, tag, why
from longtail.serve.direct import Direct
from longtail.serve.guard import Guard
from longtail.serve.models import Models
from longtail.serve.problems import add_handlers
from longtail.serve.service import Service
from longtail.serve.settings import ServeSettings

_ABOUT = "Labels for texts, from trained models. Errors are `application/problem+json` (RFC 9457)."


def create_app(
    models: Models,
    settings: ServeSettings | None = None,
    *,
    examples: ExampleTexts | None = None,
    routers: Iterable[APIRouter] = (),
    mounts: Mapping[str, ASGIApp] | None = None,
) -> FastAPI:
    """Return the ASGI application that serves models.

    Args:
        models: The open models.
        settings: Limits, tokens, batches.
        examples: Training texts of the first model, of which explanations show the nearest.
        routers: Further routes. They protect themselves with `Depends(requires(role))`; a router's own `lifespan` is
            run with that of the application.
        mounts: Applications by path, such as static files at `/`, which come after all routes.
    """
    service = Service(models, settings or ServeSettings(), examples)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="longtail",
        description=_ABOUT,
        version=version("longtail"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    add_handlers(app)
    app.add_middleware(Direct, routes=tag.router.routes)
    app.add_middleware(Guard, service=service)
    for router in (tag.router, why.router, about.router, edit.router, annif.router, docs_page.router, *routers):
        app.include_router(router)
    for path, mounted in (mounts or {}).items():
        app.mount(path, mounted)
    return app
