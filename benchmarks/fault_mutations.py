"""Damage for `faults.py`: of bytes, of arrays, of manifests, of what stands in files that people write."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from longtail.mapped_arrays import map_arrays, store_arrays
from longtail.persist import MANIFEST

EXTREMES = [0, 1, -1, 255, 65_535, 2**31 - 2, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]
JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    1.5,
    1e308,
    2**31,
    2**63,
    10**30,
    "",
    "x",
    "-1",
    [],
    {},
    [None],
    {"x": 1},
    [[]],
]
TOKENS = [
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"nan", b"inf", b"-1", b"1e400", b"1e-400", b"0x10",
    b"2147483646:1", b"2147483648", b"9223372036854775808", b"9" * 5_000, b"0." + b"1" * 100_000, b'"', b"'", b",",
    b";", b"\t", b"\n", b"\r", b":", b"|", b"[", b"]", b"{", b"}", b"[" * 3_000, b'{"a":' * 2_000, b"&lol;", b"@prefix",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"__label__", b"# ", b"\\", b"\\u0000", b"\\ud800", b"null", b"true",
    b"e\xcc\x81" * 50, b"x" * 140_000, b" " * 1_000,
]  # fmt: skip


def changed_bytes(draw: random.Random, content: bytes, same_size: bool = False) -> bytes:
    """Return the content with one to three places changed."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if not data:
            break
        at, length = draw.randrange(len(data)), draw.choice([1, 2, 4, 8, 64, 512])
        kind = draw.randrange(4 if same_size else 8)
        if kind == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at : at + length] = draw.randbytes(len(data[at : at + length]))
        elif kind == 2:
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif kind == 3:
            number = (draw.choice(EXTREMES) % 2**64).to_bytes(8, "little")[: draw.choice([4, 8])]
            at -= at % len(number)
            data[at : at + len(number)] = number[: len(data[at : at + len(number)])]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            del data[at : at + length]
        elif kind == 6:
            data[at:at] = data[at : at + length] * draw.choice([1, 2, 50])
        else:
            data[at:at] = draw.choice(TOKENS)
    return bytes(data)


def change_array(draw: random.Random, file: Path) -> None:
    """Change one array of a file of arrays, with a header that fits."""
    arrays = {name: np.array(array) for name, array in map_arrays(file).items()}
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    kind = draw.randrange(8)
    if kind <= 3 and array.size:
        whole = np.issubdtype(array.dtype, np.integer)
        value: Any = draw.choice(
            [*EXTREMES, len(array), len(array) - 1] if whole else [np.nan, np.inf, -np.inf, 1e38, 0.0]
        )
        if whole:
            value = min(max(value, int(np.iinfo(array.dtype).min)), int(np.iinfo(array.dtype).max))
        start = draw.randrange(array.size)
        array.reshape(-1)[start : start + draw.choice([1, 1, 4, array.size])] = value
    elif kind == 4:
        arrays[name] = array[: -draw.randint(1, 3)] if draw.random() < 0.7 else np.concatenate([array, array])
    elif kind == 5:
        with np.errstate(over="ignore", invalid="ignore"):
            arrays[name] = array.astype(draw.choice([np.float64, np.int64, np.int8, np.uint64, np.float16]))
    elif kind == 6:
        arrays[name] = array.reshape(1, -1) if draw.random() < 0.5 else array[:0]
    elif draw.random() < 0.5:
        del arrays[name]
    else:
        array.reshape(-1)[:] = array.reshape(-1)[::-1].copy()
    store_arrays(file, arrays)


def change_manifest(draw: random.Random, manifest: dict[str, Any]) -> None:
    """Replace, remove or add one entry, however deep."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
        for key in keys:
            places.append((value, key))
            walk(value[key])

    walk(manifest)
    holder, key = draw.choice(places)
    kind = draw.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[draw.choice(["x", "", "files", "kind", "../x"])] = draw.choice(JUNK)
    elif kind == 2 and type(holder[key]) in (int, float):
        holder[key] = draw.choice(
            [-holder[key], holder[key] + 1, holder[key] * 1000, float(holder[key]), str(holder[key])]
        )
    else:
        holder[key] = draw.choice(JUNK)


def reseal(folder: Path, draw: random.Random | None = None, files: list[str] | None = None) -> None:
    """Write a manifest with right checksums of all files, or of some; with `draw` after one change of its entries."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest.pop("checksum", None)
    for name in manifest["files"] if files is None else files:
        with open(folder / name, "rb") as stream:
            checksum = hashlib.file_digest(stream, "sha256").hexdigest()
        manifest["files"][name] = {"bytes": (folder / name).stat().st_size, "sha256": checksum}
    if draw is not None:
        change_manifest(draw, manifest)
    manifest["checksum"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))
