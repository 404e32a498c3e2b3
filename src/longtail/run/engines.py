"""Which engines there are, for the command line and for processes that are told by another one which to use.

LocalEngine(2).plain()  ->  {"kind": "local", "threads": 2}  ->  engine_of(...)  ->  LocalEngine(2)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.errors import ConfigError
from longtail.run.engine import Engine
from longtail.run.local import LocalEngine

LOCAL, RAY = "local", "ray"


def engine_of(plain: Mapping[str, Any]) -> Engine:
    """Return the engine that plain data describe: its kind, threads, and for Ray the address and the storage."""
    kind, threads, address, storage = (plain.get(name) for name in ("kind", "threads", "address", "storage"))
    if kind == RAY:
        from longtail.run.ray import RayEngine

        return RayEngine(address, n_jobs=threads, storage=storage)
    if kind != LOCAL or address:
        got = f"{kind}://{address}" if address else kind
        raise ConfigError(f"`engine` must be {LOCAL}, {RAY} or {RAY}://HOST:PORT, got '{got}'")
    if storage is not None:
        raise ConfigError(f"`storage` is for `engine={RAY}`; leave it out")
    return LocalEngine(threads)
