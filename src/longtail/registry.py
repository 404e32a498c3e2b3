"""Names of parts: `lightxml` → a class, with plug-ins by entry point and "did you mean".

A plug-in package declares an entry point in the group of a registry, such as `longtail.methods`, `longtail.encoders`,
`longtail.heads`, `longtail.label_vectors` or `longtail.formats`. It is imported only when its name is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Generic, TypeVar

from longtail.errors import ConfigError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """The parts of one kind, by name. A plug-in cannot replace a part that longtail brings."""

    def __init__(self, kind: str, modules: dict[str, str] | None = None, command: str = "") -> None:
        """`modules` are the built-in names and the modules that register them; `command` lists all names."""
        self.kind, self.command = kind, command
        self.group = f"longtail.{kind.replace(' ', '_')}s"
        self._modules = dict(modules or {})
        self._parts: dict[str, T] = {}
        self._plugged: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that makes a part known as `name`, which a class also gets as its attribute `name`."""

        def keep(part: T) -> T:
            self._parts[name] = part
            if isinstance(part, type):
                part.name = name  # type: ignore[attr-defined]
            return part

        return keep

    def __contains__(self, name: str) -> bool:
        return name in self._parts or name in self._modules or bool(entry_points(group=self.group, name=name))

    def names(self) -> list[str]:
        """Return all known names: the built-in ones in their order, then those of plug-ins, sorted."""
        others = {point.name for point in entry_points(group=self.group)} | set(self._parts)
        return [*self._modules, *sorted(others - set(self._modules))]

    def get(self, name: str) -> T:
        """Return the part called `name`; import the module that holds it on first use."""
        if name not in self._parts and name in self._modules:
            import_module(self._modules[name])
        if name in self._parts:
            return self._parts[name]
        if name not in self._plugged:
            for point in entry_points(group=self.group, name=name):
                self._plugged[name] = self._load(point)
        if name not in self._plugged:
            known = self.names()
            hint = did_you_mean(name, known)
            listed = f" ({self.command})" if self.command else f"{'' if hint else '.'} Known are {', '.join(known)}."
            raise ConfigError(f"unknown {self.kind} '{name}'{hint}{listed}")
        return self._plugged[name]

    def summary(self, name: str) -> str:
        """Return the first line of the docstring of a part; a built-in part is read for it, not imported."""
        if name in self._parts or name not in self._modules:
            return (self.get(name).__doc__ or "").strip().partition("\n")[0]
        return _summary(self._modules[name], name)

    def _load(self, point: EntryPoint) -> T:
        try:
            part: T = point.load()
        except (ImportError, AttributeError) as error:
            package = point.dist.name if point.dist else point.value
            raise ConfigError(
                f"{self.kind} '{point.name}' cannot be loaded from the plug-in {package}: {error}"
            ) from error
        return part


def _summary(module: str, name: str) -> str:
    """Return the first line of the docstring of the class that the source of `module` registers as `name`."""
    package, _, stem = module.rpartition(".")
    source = (files(package) / f"{stem}.py").read_text(encoding="utf-8")
    summaries: list[str] = re.findall(rf'register\("{name}"\)\nclass .*\n    """(.*?)(?:"""|\n)', source)
    return summaries[0]
