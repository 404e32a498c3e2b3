"""Files of lines, read in blocks: decompressed, checked as UTF-8, and every fault with its file and line.

    file (plain, .gz, .bz2, .zst)  ->  Block(data: whole lines, line: number of the first)  ->  Arrow strings

A block is a few megabytes of whole lines, or one line where that is longer, so that memory stays bounded
by the block and the longest line, not by the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from longtail.errors import DataError

OnBadUtf8: TypeAlias = Literal["error", "replace"]

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 30
"""An Arrow string ends at 2 GiB; a line half as long is a broken file, not a text."""

COMPRESSIONS = (".gz", ".bz2", ".zst")
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines of a file."""

    data: bytes
    line: int
    """Number of the first line, from 1."""


class Lines(NamedTuple):
    """Whole lines of a file, without their ends."""

    lines: pa.StringArray
    line: int
    """Number of the first line, from 1."""


def read_blocks(path: Path, on_bad_utf8: OnBadUtf8 = "error", stream: BufferedIOBase | None = None) -> Iterator[Block]:
    """The file as blocks of whole lines of valid UTF-8; or an open stream, which `path` only names."""
    line = 1
    for data in _raw_blocks(path, stream=stream):
        if line == 1:
            data = data.removeprefix(_BOM)
        n_lines = data.count(b"\n")
        if not data.isascii():
            data = _checked(path, line, data, on_bad_utf8)
        if data:
            yield Block(data, line)
        line += n_lines


def read_lines(path: Path, on_bad_utf8: OnBadUtf8 = "error", stream: BufferedIOBase | None = None) -> Iterator[Lines]:
    """The file as Arrow arrays of lines; `\\n` and `\\r\\n` end a line, nothing else does."""
    for data, line in read_blocks(path, on_bad_utf8, stream):
        whole = pa.array([data.removesuffix(b"\n")], pa.string())
        lines = pc.list_flatten(pc.split_pattern(whole, "\n"))
        yield Lines(pc.replace_substring_regex(lines, "\r$", "") if b"\r" in data else lines, line)


def read_rows(path: Path, on_bad_utf8: OnBadUtf8 = "error") -> Iterator[tuple[int, list[str]]]:
    """Line number and tab-separated cells of every line that is not blank: for small files."""
    for block in read_lines(path, on_bad_utf8):
        for number, line in enumerate(block.lines.to_pylist(), block.line):
            if line.strip():
                yield number, line.split("\t")


def aligned(paths: Sequence[Path], on_bad_utf8: OnBadUtf8 = "error") -> Iterator[list[pa.StringArray]]:
    """Several files line by line: equally long pieces of each; they must have as many lines."""
    streams = [read_lines(path, on_bad_utf8) for path in paths]
    nothing = pa.array([], pa.string())
    pieces: list[pa.StringArray] = [nothing] * len(paths)
    n_lines = 0
    while True:
        for i, stream in enumerate(streams):
            if not len(pieces[i]):
                pieces[i] = next((block.lines for block in stream), nothing)
        n = min(len(piece) for piece in pieces)
        if not n:
            break
        yield [piece.slice(0, n) for piece in pieces]
        pieces = [piece.slice(n) for piece in pieces]
        n_lines += n
    longer = next((path for path, piece in zip(paths, pieces, strict=True) if len(piece)), None)
    if longer is not None:
        shorter = next(path for path, piece in zip(paths, pieces, strict=True) if not len(piece))
        raise fault(longer, n_lines + 1, f"must have as many lines as {shorter.name}, which ends after {n_lines:,}")


def first_line(path: Path) -> str:
    """The first line that is not blank, at most its first kilobytes; empty where the file cannot be read so."""
    try:
        for block in _raw_blocks(path, 1 << 16):
            for line in block.removeprefix(_BOM).split(b"\n"):
                if line.strip():
                    return line[:8192].decode("utf-8", "replace").rstrip("\r")
    except DataError:
        pass  # whoever reads the file in earnest reports it
    return ""


def fault(path: Path, line: int, what: str) -> DataError:
    """A fault in the data, with its place."""
    return DataError(f"{path}:{line}: {what}")


def bare_suffix(path: Path) -> str:
    """The file's suffix below its compression, in lower case: `.jsonl` of `train.jsonl.zst`."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSIONS else path.suffix.lower()


def bare_stem(path: Path) -> str:
    """The file's name without suffix and compression: `train` of `train.jsonl.zst`."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


def _raw_blocks(path: Path, size: int | None = None, stream: BufferedIOBase | None = None) -> Iterator[bytes]:
    waiting: list[bytes] = []
    n_waiting = 0
    try:
        with pa.input_stream(str(path)) if stream is None else nullcontext(stream) as source:
            # Of a stream what is there is taken, so that lines typed or piped one by one are answered one by one.
            read = source.read if stream is None else source.read1
            while chunk := read(size or BLOCK_BYTES):
                end = chunk.rfind(b"\n") + 1
                if end:
                    yield b"".join((*waiting, chunk[:end]))
                    waiting, n_waiting = [], 0
                waiting.append(chunk[end:])
                n_waiting += len(chunk) - end
                if n_waiting > MAX_LINE_BYTES:
                    raise DataError(f"{path}: a line must be at most {MAX_LINE_BYTES:,} bytes long; is it a text file?")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if n_waiting:
        yield b"".join(waiting)


def _checked(path: Path, line: int, data: bytes, on_bad_utf8: OnBadUtf8) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if on_bad_utf8 == "replace":
            return data.decode(errors="replace").encode()
        start = data.rfind(b"\n", 0, error.start) + 1
        at_line = line + data.count(b"\n", 0, error.start)
        column = len(data[start : error.start].decode()) + 1
        what = f"column {column}: must be UTF-8, got byte 0x{data[error.start]:02x}"
        raise fault(path, at_line, f"{what}; save the file as UTF-8 or set on_bad_utf8 to 'replace'") from error
    return data
