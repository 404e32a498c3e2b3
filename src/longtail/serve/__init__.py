"""Trained models behind HTTP: one process answers, several share the mapped weights, a supervisor watches them.

    create_app(Models.open({"books": "my-model"}))    an ASGI application (longtail.serve.app)

A request walks: middleware (who may ask from where, security headers, measuring) → route (decoding, roles, limits) →
batcher (texts of several requests together) → model → answer as bytes. Errors are problems of RFC 9457.
"""

from longtail.errors import MissingExtraError

try:
    import fastapi  # noqa: F401
    import msgspec  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        f"the server needs {error.name}, which is not installed; install it with pip install 'longtail[serve]'"
    ) from error
