"""Read files of lines in blocks: decompressed and checked as UTF-8; every fault names its file and line.

    file (plain, .gz, .bz2, .zst)  ->  Block(data: whole lines, line: number of the first)  ->  Arrow strings

A block is a few megabytes of whole lines, or one line if that is longer: memory is bounded by the block and the
longest line, not by the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from longtail.data.arrow import string_array
from longtail.errors import DataError

OnBadUtf8: TypeAlias = Literal["error", "replace"]

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 30
"""An Arrow string ends at 2 GiB; a line half as long is a broken file, not a text."""

COMPRESSIONS = (".gz", ".bz2", ".zst")
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Block(NamedTuple):
    """Whole lines of a file."""

    data: bytes
    line: int
    """Number of the first line, from 1."""


class LineBlock(NamedTuple):
    """Whole lines of a file, without their ends."""

    lines: pa.StringArray
    line: int
    """Number of the first line, from 1."""


def read_blocks(
    path: Path,
    on_bad_utf8: OnBadUtf8 = "error",
    stream: BufferedIOBase | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Block]:
    """Yield blocks of whole lines of valid UTF-8.

    Args:
        path: The file; with a `stream` that is open already, it only names it in messages.
        on_bad_utf8: Whether to raise at bytes that are not UTF-8, or to put U+FFFD there.
        stream: An open stream to read instead of a file.
        block_bytes: How many bytes are read at a time.
        max_line_bytes: Longer lines are refused.
    """
    line = 1
    for data in _raw_blocks(path, block_bytes, max_line_bytes, stream):
        if line == 1:
            data = data.removeprefix(_BOM)
        n_lines = data.count(b"\n")
        if not data.isascii():
            data = _checked(path, line, data, on_bad_utf8)
        if data:
            yield Block(data, line)
        line += n_lines


def read_lines(
    path: Path,
    on_bad_utf8: OnBadUtf8 = "error",
    stream: BufferedIOBase | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[LineBlock]:
    r"""Yield lines as Arrow arrays; only `\n` and `\r\n` end a line. The arguments are those of `read_blocks`."""
    for data, line in read_blocks(path, on_bad_utf8, stream, block_bytes=block_bytes):
        whole = string_array([data.removesuffix(b"\n")])
        lines = pc.list_flatten(pc.split_pattern(whole, "\n"))
        yield LineBlock(pc.replace_substring_regex(lines, "\r$", "") if b"\r" in data else lines, line)


def read_rows(path: Path, on_bad_utf8: OnBadUtf8 = "error") -> Iterator[tuple[int, list[str]]]:
    """Yield line number and tab-separated cells of every line that is not blank; for small files."""
    for block in read_lines(path, on_bad_utf8):
        for number, line in enumerate(block.lines.to_pylist(), block.line):
            if line.strip():
                yield number, line.split("\t")


def aligned(
    paths: Sequence[Path], on_bad_utf8: OnBadUtf8 = "error", *, block_bytes: int = BLOCK_BYTES
) -> Iterator[list[pa.StringArray]]:
    """Yield pieces of several files with the same lines of each; raise if the files differ in length."""
    streams = [read_lines(path, on_bad_utf8, block_bytes=block_bytes) for path in paths]
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
    """Return the first line that is not blank, at most 8 kB of it; empty if the file cannot be read as lines."""
    try:
        for block in _raw_blocks(path, 1 << 16, MAX_LINE_BYTES):
            for line in block.removeprefix(_BOM).split(b"\n"):
                if line.strip():
                    return line[:8192].decode("utf-8", "replace").rstrip("\r")
    except DataError:
        pass  # reported when the whole file is read
    return ""


def fault(path: Path, line: int, what: str) -> DataError:
    """Return an error that names the file and line of a fault."""
    return DataError(f"{path}:{line}: {what}")


def bare_suffix(path: Path) -> str:
    """Return the suffix without compression, in lower case: `.jsonl` of `train.jsonl.zst`."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSIONS else path.suffix.lower()


def bare_stem(path: Path) -> str:
    """Return the name without suffix and compression: `train` of `train.jsonl.zst`."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


def _raw_blocks(
    path: Path, block_bytes: int, max_line_bytes: int, stream: BufferedIOBase | None = None
) -> Iterator[bytes]:
    waiting: list[bytes] = []
    n_waiting = 0
    try:
        with pa.input_stream(str(path)) if stream is None else nullcontext(stream) as source:
            # read1 returns what has arrived, so that lines that are typed or piped one by one are answered one by one.
            read = source.read if stream is None else source.read1
            while chunk := read(block_bytes):
                end = chunk.rfind(b"\n") + 1
                if end:
                    yield b"".join((*waiting, chunk[:end]))
                    waiting, n_waiting = [], 0
                waiting.append(chunk[end:])
                n_waiting += len(chunk) - end
                if n_waiting > max_line_bytes:
                    raise DataError(f"{path}: a line must be at most {max_line_bytes:,} bytes long; is it a text file?")
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
        coding = "utf-16" if at_line == 1 and data.startswith(_UTF_16) else "cp1252"
        how = f"save the file as UTF-8 (if it is in {coding}: iconv -f {coding} -t utf-8 OLD > NEW)"
        raise fault(path, at_line, f"{what}; {how} or set `on_bad_utf8=replace`") from error
    return data
