"""JSON schemas of msgspec structures, for the OpenAPI description of routes that decode and encode by themselves."""

from __future__ import annotations

from typing import Any

import msgspec

_JSON = "application/json"


def json_body(kind: Any, example: Any = None) -> dict[str, Any]:
    """Return the OpenAPI description of a body of JSON."""
    content: dict[str, Any] = {"schema": inline_schema(kind)}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": True, "content": {_JSON: content}}}


def json_response(kind: Any, about: str) -> dict[str, Any]:
    """Return the OpenAPI description of an answer of JSON."""
    return {"description": about, "content": {_JSON: {"schema": inline_schema(kind)}}}


def inline_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a structure, with the schemas that it refers to in their places."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    inlined: dict[str, Any] = _inlined(schema, components)
    return inlined


def _inlined(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, components) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {**_inlined(components[schema["$ref"]], components), **{k: v for k, v in schema.items() if k != "$ref"}}
    return {key: _inlined(value, components) for key, value in schema.items()}
