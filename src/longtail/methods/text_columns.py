"""Which columns of texts a method reads: what its option groups that read texts name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from longtail.data.dataset import TEXT
from longtail.errors import ConfigError


class TextColumns:
    """Mixin that answers which columns of texts a method reads."""

    name: ClassVar[str]
    options_class: ClassVar[type[Any]]
    options: Any
    text_options: ClassVar[tuple[str, ...]] = ()
    """Names of the options (a group, or a tuple of groups) that say which columns of texts are read."""

    @classmethod
    def options_for_fields(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options that, laid over `options`, make the method read these fields of texts (`title,text`)."""
        if not cls.text_options:
            raise ConfigError(f"method '{cls.name}' reads the field '{TEXT}' only, got '{fields}'")
        checked = cls.options_class.of(options, source=cls.name)
        groups = {name: getattr(checked, name) for name in cls.text_options}
        return {
            name: [one.options_for_fields(fields) for one in group]
            if isinstance(group, tuple)
            else group.options_for_fields(fields)
            for name, group in groups.items()
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that texts must have."""
        names = dict.fromkeys(name for reader in self._text_readers() for name in reader.columns)
        return tuple(names) or (TEXT,)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Further columns that are read where texts have them."""
        names = dict.fromkeys(name for reader in self._text_readers() for name in reader.optional_columns)
        return tuple(name for name in names if name not in self.columns)

    def _text_readers(self) -> list[Any]:
        """Return the option groups that say which columns of texts are read."""
        groups = [getattr(self.options, name) for name in self.text_options]
        return [one for group in groups for one in (group if isinstance(group, tuple) else (group,))]
