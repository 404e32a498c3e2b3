"""Put label tables together whose rows were trained by several processes.

    rows of each process  ->  one file, each process writes its part  ->  all rows, mapped from the file

No process ever has all rows in its own memory: the file's pages are read where they are looked at and are shared by
the processes of a machine. The file has no name once all have mapped it, so it is gone when the last of them ends.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from longtail.nn.heads.table import LabelTable
from longtail.nn.training.parallel import Exchange, await_all

_LONGEST_PATH = 4096
_AT_ONCE = 1 << 16
"""Rows that are copied to the host at once."""


def put_together(tables: Mapping[str, LabelTable], folder: Path | None, exchange: Exchange) -> None:
    """Let each sharded table hold all of its rows, on the host; all processes must call it.

    The file lies in `folder`, which all processes must see, or in a temporary one.
    """
    sharded = {name: table for name, table in tables.items() if table.is_sharded}
    if not sharded:
        return
    place = _from_main(tempfile.mkdtemp(dir=folder, prefix="rows-"), exchange)
    for name, table in sharded.items():
        bias = None if table.bias is None else _whole(place / f"{name}-bias", table.bias[:, None], table, exchange)
        weight = _whole(place / name, table.weight, table, exchange)
        table.become_whole(weight, None if bias is None else bias[:, 0])
    await_all()
    if exchange.rank == 0:
        with suppress(OSError):  # where mapped files cannot be removed
            for file in place.iterdir():
                file.unlink()
            place.rmdir()


def _whole(file: Path, values: Tensor, table: LabelTable, exchange: Exchange) -> Tensor:
    """Return the rows (n_rows, d) of all processes, of which `values` (n, d) are here."""
    row_bytes = values.shape[1] * values.element_size()
    if exchange.rank == 0:
        with open(file, "wb") as out:
            out.truncate(table.n_rows * row_bytes)
    await_all()
    with open(file, "r+b") as out:
        out.seek(table.rows.start * row_bytes)
        for some in values.detach().split(_AT_ONCE):
            out.write(some.cpu().contiguous().view(torch.uint8).numpy().data)
        out.flush()
        os.fsync(out.fileno())
    await_all()
    size = table.n_rows * values.shape[1]
    return torch.from_file(str(file), shared=False, size=size, dtype=values.dtype).view(table.n_rows, -1)


def _from_main(path: str, exchange: Exchange) -> Path:
    """Return the path that the main process has made; those that the others have made are removed."""
    name = np.zeros(_LONGEST_PATH, np.int64)
    encoded = np.frombuffer(os.fsencode(path), np.uint8)
    name[: len(encoded)] = encoded
    main = exchange.arrays(name)[0]
    place = Path(os.fsdecode(main[main > 0].astype(np.uint8).tobytes()))
    if Path(path) != place:
        Path(path).rmdir()
    return place
