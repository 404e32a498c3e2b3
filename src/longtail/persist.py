"""Folders that are written completely or not at all, and opened without being read.

    model/
      manifest.json        format version, kind, facts, and size and checksum of every other file
      <name>.safetensors   numpy arrays, memory-mapped on opening and shared between processes
      <name>.arrow         tables of texts (Arrow IPC), memory-mapped too

A folder is built as `.NAME.PID.tmp` beside its final place and renamed at the end; an older one is meanwhile called
`.NAME.PID.old`. A kill, a full disk or Ctrl-C therefore never leaves half a model, and never loses the model that was
there before. Who writes holds the lock of the folder, and removes what killed processes left. Nothing is pickled.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.checksums import first_damaged, sha256
from longtail.errors import LongtailError, ModelFormatError
from longtail.files import FileLock, as_path, held, link_target, remove
from longtail.mapped_arrays import DAMAGE, Arrays, map_arrays, store_arrays
from longtail.replacing import await_replacement, settle, swap_in

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT_VERSION = 2
"""The format that is written. Models of format 1 have no score steps and only the labels that they can score."""
MANIFEST = "manifest.json"
ALWAYS_VERIFIED_BYTES = 256 << 20
"""The files of folders up to this size are compared with their checksums on every opening; larger ones once."""


class Folder:
    """An open folder: its manifest, and its arrays and tables as memory maps."""

    def __init__(self, path: str | Path, kind: str, verify: bool | None = None) -> None:
        """Open `path`, which must hold a `kind`.

        Files are compared with their checksums, those of large folders once and not again before they change; `verify`
        forces or skips that.
        """
        self.path = as_path(path)
        self.manifest = _read_manifest(self.path, kind)
        self._files, self._prefix = self.manifest["files"], ""
        self._opened = _identity(self.path)
        _check_files(self.path, self._files, verify)

    def within(self, name: str) -> Folder:
        """Return what was written `within` this name: files of their own and a manifest of its own."""
        inner = copy.copy(self)
        manifest = self.manifest.get(name)
        if not isinstance(manifest, dict):
            raise ModelFormatError(f"{self.path} has no part '{name}'; save the model again")
        inner.manifest, inner._prefix = {"format": self.format, **manifest}, f"{self._prefix}{name}-"
        return inner

    @property
    def format(self) -> int:
        """The format version that the folder was written in."""
        return int(self.manifest["format"])

    @property
    def was_replaced(self) -> bool:
        """Whether another folder stands in its place now."""
        return _identity(self.path) != self._opened

    def arrays(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        """Return the arrays stored as `name`, mapped copy-on-write: shared between processes until one writes."""
        return map_arrays(self._file(f"{name}.safetensors"))

    def table(self, name: str) -> pa.Table:
        """Return the Arrow table stored as `name`, memory-mapped."""
        import pyarrow as pa

        file = self._file(f"{name}.arrow")
        try:
            table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            table.validate(full=True)
            return table
        except (pa.ArrowException, OSError) as error:
            raise ModelFormatError(f"{file} is damaged ({error}); save the model again") from error

    def text(self, file: str) -> str:
        """Return the text stored as `file`."""
        try:
            return self._file(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelFormatError(f"{self.path / file} is damaged ({error}); save the model again") from error

    def __contains__(self, file: str) -> bool:
        return f"{self._prefix}{file}" in self._files

    def _file(self, file: str) -> Path:
        if file not in self:
            raise ModelFormatError(
                f"{self.path} has no {self._prefix}{file}; this version of longtail did not write it"
            )
        return self.path / f"{self._prefix}{file}"


class FolderWriter:
    """A folder that `write_folder` is building."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path, self._prefix = path, prefix
        self.manifest: dict[str, Any] = {}

    def within(self, name: str) -> FolderWriter:
        """Return a writer into the same folder, with files and a manifest of its own: a model inside a model."""
        inner = FolderWriter(self.path, f"{self._prefix}{name}-")
        self.manifest[name] = inner.manifest
        return inner

    def arrays(self, name: str, arrays: Arrays) -> None:
        """Store numpy arrays as `name`."""
        store_arrays(self.path / f"{self._prefix}{name}.safetensors", arrays)

    def text(self, file: str, text: str) -> None:
        """Store text as `file`."""
        (self.path / f"{self._prefix}{file}").write_text(text, encoding="utf-8")

    def table(self, name: str, table: pa.Table) -> None:
        """Store an Arrow table as `name`."""
        import pyarrow as pa

        file = self.path / f"{self._prefix}{name}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)


@contextmanager
def write_folder(path: str | Path, kind: str) -> Iterator[FolderWriter]:
    """Build a folder of `kind`; move it to `path` in one step when the block ends without an error."""
    final = link_target(as_path(path))  # a link stays, its target is replaced
    check_replaceable(path, kind)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with held(FileLock(final)):
            settle(final)
            check_replaceable(path, kind)
            try:
                temporary.mkdir()
                writer = FolderWriter(temporary)
                yield writer
                _write_manifest(temporary, kind, writer.manifest)
                swap_in(temporary, final)
            finally:
                remove(temporary)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LongtailError(
            f"cannot write {path}: {reason}; nothing there was changed. Free some space or choose another place."
        ) from error


def amend_manifest(path: str | Path, kind: str, facts: Mapping[str, Any], revision: str) -> str:
    """Replace some facts in the manifest of a folder, in one step, and return its revision then.

    All other files stay as they are. `revision` is that of the folder as the caller read it (`revision_of`): raises if
    somebody else has written something since.
    """
    final = link_target(Path(path))
    temporary = final / f".{MANIFEST}.{os.getpid()}.tmp"
    try:
        with held(FileLock(final)):
            settle(final)
            manifest = _read_manifest(final, kind)
            if revision_of(final) != revision:
                raise LongtailError(f"{path} was changed by somebody else meanwhile; nothing was written, try again")
            try:
                _write_json(temporary, {**manifest, **facts})
                temporary.replace(final / MANIFEST)
                return revision_of(final)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LongtailError(f"cannot write {path}: {reason}; nothing there was changed. Free some space.") from error


def listed_files(path: str | Path, kind: str) -> list[str]:
    """Return the names of the files that the manifest of a folder of `kind` lists; they need not be there yet."""
    return list(_read_manifest(as_path(path), kind)["files"])


def check_replaceable(path: str | Path, kind: str) -> None:
    """Raise if `path` holds anything but a folder of `kind`, or a file in it that we did not write, or is read-only."""
    link_target(path := as_path(path))  # raises before anything is trained
    try:
        if path.exists():
            names = {file.name for file in path.iterdir()} if path.is_dir() else {""}
            manifest = _manifest_at(path)
            if names and manifest.get("kind") != kind:
                raise LongtailError(f"{path} exists and is not a longtail {kind}; choose another place")
            foreign = sorted(names - {MANIFEST, *manifest.get("files", ())})
            if foreign:
                shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
                raise LongtailError(
                    f"{path} holds {len(foreign):,} files that longtail did not write ({shown}), which replacing the "
                    f"{kind} would delete; move them away or choose another place"
                )
        parent = next(folder for folder in path.absolute().parents if folder.exists())
    except OSError as error:
        raise LongtailError(f"cannot write {path}: {error.strerror}; choose another place") from error
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise LongtailError(f"cannot write {path}: {parent} is not a writable folder; choose another place")


def revision_of(path: str | Path) -> str:
    """Return a hash of the manifest of a folder, and with it of all its files; empty if there is none."""
    try:
        return hashlib.sha256((Path(path) / MANIFEST).read_bytes()).hexdigest()[:16]
    except OSError:
        return ""  # opening the folder says what is wrong


def _read_manifest(path: Path, kind: str) -> dict[str, Any]:
    await_replacement(link_target(path))
    if not (path / MANIFEST).is_file():
        raise ModelFormatError(f"{path} is not a longtail {kind}: it has no {MANIFEST}")
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        version = manifest["format"]
        if type(version) is not int or version < 1:
            raise ValueError(f"format must be a number from 1 to {FORMAT_VERSION}, got {version!r:.60}")
        if version > FORMAT_VERSION:
            raise ModelFormatError(
                f"{path} has format {version}, this longtail reads up to {FORMAT_VERSION}; install a newer longtail"
            )
        actual, unchanged = str(manifest["kind"]), manifest.pop("checksum") == _checksum_of(manifest)
    except ModelFormatError:
        raise
    except (*DAMAGE, OSError) as error:
        raise ModelFormatError(f"{path / MANIFEST} is damaged ({error!r}); save the model again") from error
    if actual != kind:
        raise ModelFormatError(f"{path} holds a {actual}, not a {kind}")
    if not unchanged:
        raise ModelFormatError(f"{path / MANIFEST} was changed after it was written; save the model again")
    if not isinstance(manifest.get("files"), dict) or not all(
        _is_file_entry(name, facts) for name, facts in manifest["files"].items()
    ):
        raise ModelFormatError(f"{path / MANIFEST} must name files with `bytes` and `sha256`; save the model again")
    return dict(manifest)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = (path / MANIFEST).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _is_file_entry(name: str, facts: Any) -> bool:
    """Return whether a manifest may say this of a file: it must lie in the folder itself."""
    return Path(name).name == name and isinstance(facts, dict) and type(facts.get("bytes")) is int and "sha256" in facts


def _check_files(path: Path, files: Mapping[str, Any], verify: bool | None) -> None:
    for name, facts in files.items():
        file = path / name
        size = file.stat().st_size if file.is_file() else -1
        if size < 0:
            raise ModelFormatError(f"{file} is missing; copy the model folder again")
        if size != facts["bytes"]:
            raise ModelFormatError(f"{file} has {size:,} bytes, must have {facts['bytes']:,}; copy the model again")
    if verify is False:
        return
    small = sum(facts["bytes"] for facts in files.values()) <= ALWAYS_VERIFIED_BYTES
    try:
        damaged = first_damaged({path / name: facts["sha256"] for name, facts in files.items()}, verify or small)
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read ({error}); copy the model folder again") from error
    if damaged is not None:
        raise ModelFormatError(f"{damaged} is damaged (checksum differs); copy the model folder again")


def _write_manifest(folder: Path, kind: str, facts: Mapping[str, Any]) -> None:
    files = {file.name: {"bytes": file.stat().st_size, "sha256": sha256(file)} for file in sorted(folder.iterdir())}
    _write_json(folder / MANIFEST, {"format": FORMAT_VERSION, "kind": kind, **facts, "files": files})


def _write_json(file: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest with its checksum."""
    manifest = json.loads(json.dumps(manifest))
    manifest = {**manifest, "checksum": _checksum_of(manifest)}
    with open(file, "w", encoding="utf-8") as out:
        json.dump(manifest, out, indent=1, ensure_ascii=False)
        out.flush()
        os.fsync(out.fileno())


def _manifest_at(path: Path) -> dict[str, Any]:
    """Return the manifest of a folder that need not be one of ours or whole, as far as it can be read."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        return {"kind": str(manifest["kind"]), "files": [str(name) for name in manifest["files"]]}
    except (*DAMAGE, OSError):
        return {}


def _checksum_of(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
