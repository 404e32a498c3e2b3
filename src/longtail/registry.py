"""Names of parts: `lightxml` → a class, with plug-ins by entry point and "did you mean".

A plug-in package declares an entry point in the group `longtail.<kind>s`, for example
`longtail.methods`; it is imported only when its name is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from longtail.errors import ConfigError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """One place where parts of a kind are known by name."""

    def __init__(self, kind: str, modules: dict[str, str] | None = None) -> None:
        self.kind = kind
        self._modules = dict(modules or {})
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that makes a part known as `name`."""

        def keep(part: T) -> T:
            self._parts[name] = part
            return part

        return keep

    def names(self) -> list[str]:
        """All known names, built in and from plug-ins, sorted."""
        plugged = {point.name for point in entry_points(group=f"longtail.{self.kind}s")}
        return sorted(plugged | set(self._modules) | set(self._parts))

    def get(self, name: str) -> T:
        """The part called `name`; imports the module that holds it on first use."""
        if name not in self._parts and name in self._modules:
            import_module(self._modules[name])
        if name not in self._parts:
            for point in entry_points(group=f"longtail.{self.kind}s", name=name):
                self._parts[name] = point.load()
        if name not in self._parts:
            hint = did_you_mean(name, self.names())
            raise ConfigError(f"unknown {self.kind} '{name}'{hint} (longtail {self.kind}s)")
        return self._parts[name]
