"""Trained models behind HTTP: one process answers, several share the mapped weights, a supervisor watches them.

    create_app(Models.open({"books": "my-model"}))    an ASGI application (longtail.serve.app)

A request walks: middleware (who may ask from where, security headers, measuring) → route (decoding, roles, limits) →
batcher (texts of several requests together) → model → answer as bytes. Errors are problems of RFC 9457.
"""
