"""What the manifest of a model must say, and what is said where it does not fit the other files of the folder.

Checksums find what was damaged by chance. A manifest that somebody wrote by hand has the right ones, and says anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from longtail.errors import LongtailError, MissingExtraError, ModelFormatError
from longtail.persist import FORMAT_VERSION, Folder

_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What can be raised when a model is built from a manifest that says something else than its files."""


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise if the facts of a model, or the versions that it was written with, are not of the kinds they must be."""
    facts, versions = manifest["data"], manifest["versions"]
    for name, least in {"n_texts": 1, "n_labels": 1, "n_labels_without_texts": 0}.items():
        if type(facts.get(name, least)) is not int or facts.get(name, least) < least:
            raise ModelFormatError(f"data.{name} must be a number from {least} on, got {facts[name]!r:.60}")
    for name in ("fingerprint", "name", "source", "split"):
        if not isinstance(facts.get(name, ""), str):
            raise ModelFormatError(f"data.{name} must be a text, got {facts[name]!r:.60}")
    if type(dict(facts.get("held_out") or {"share": 0.0})["share"]) not in (int, float):
        raise ModelFormatError(f"data.held_out must have a share, got {facts['held_out']!r:.60}")
    if not all(isinstance(version, str) for version in dict(versions).values()):
        raise ModelFormatError(f"versions must be texts by package, got {versions!r:.60}")


@contextmanager
def opening(folder: Folder) -> Iterator[None]:
    """Turn what is raised while a model is opened into errors that name the folder and say what to do."""
    try:
        yield
    except MissingExtraError:
        raise
    except (LongtailError, *_MISFITS) as error:
        if folder.format == FORMAT_VERSION and isinstance(error, LongtailError):
            raise
        versions = folder.manifest.get("versions")
        writer = versions.get("longtail") if isinstance(versions, dict) else None
        what = str(error) if isinstance(error, LongtailError) else repr(error)
        raise ModelFormatError(
            f"{folder.path} was written by longtail {writer or 'of an older version'} (format {folder.format}), which "
            f"this version cannot open ({what}); copy the model folder again, or train the model again"
        ) from error
