"""What `help`, completion and `inspect.signature` show of a method: its options, read from its options class.

Both are made when somebody asks, so that importing a method costs nothing.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from longtail.options import help_of

_COLUMNS = 100


class OptionsSignature:
    """Descriptor for `__signature__`: `preset`, then the options as keywords."""

    def __get__(self, instance: object, owner: type[Any]) -> inspect.Signature:
        preset = inspect.Parameter(
            "preset", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=str | None
        )
        if not hasattr(owner, "options_class"):  # a method that leaves its options to those that inherit from it
            return inspect.Signature([preset, inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)])
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty
                if field.is_required()
                else field.get_default(call_default_factory=True),
                annotation=field.annotation,
            )
            for name, field in owner.options_class.model_fields.items()
        ]
        return inspect.Signature([preset, *options])


class OptionsDoc(str):
    """The docstring of a class that, when it is asked for on the class, goes on with the help of each option.

    `help` reads class dictionaries without asking descriptors and shows the docstring itself, with the signature.
    """

    def __get__(self, instance: object, owner: type[Any]) -> str:
        if not hasattr(owner, "options_class"):
            return str(self)
        indent = " " * 8
        lines = ["    preset", f"{indent}Named settings that the options lie over; `longtail methods` lists them."]
        for name, text in help_of(owner.options_class).items():
            lines += [f"    {name}", *textwrap.wrap(text, _COLUMNS, initial_indent=indent, subsequent_indent=indent)]
        return "\n".join([inspect.cleandoc(self), "", "Options:", *lines])
