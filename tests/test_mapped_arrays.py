"""Arrays in safetensors files: what is stored is read back, by us and by others, and damage is one clear error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import load_file, save_file

from longtail.errors import ModelFormatError
from longtail.mapped_arrays import map_arrays, store_arrays

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
        arrays_of.arrays(st.sampled_from(DTYPES), arrays_of.array_shapes(min_dims=0, max_side=4, min_side=0)),
        max_size=5,
    )
)
def test_arrays_are_what_the_safetensors_library_reads_and_writes(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    store_arrays(folder / "ours.safetensors", arrays)
    save_file({name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()}, folder / "theirs")
    for found in (
        load_file(folder / "ours.safetensors"),
        map_arrays(folder / "ours.safetensors"),
        map_arrays(folder / "theirs"),
    ):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    "change",
    [lambda a: a[:, ::2], lambda a: a.T, lambda a: np.asfortranarray(a), lambda a: a[::-1]],
    ids=["strided", "transposed", "fortran", "reversed"],
)
def test_arrays_of_any_layout_are_stored(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    array = change(np.arange(24).reshape(4, 6))
    store_arrays(tmp_path / "x", {"a": array})
    np.testing.assert_array_equal(map_arrays(tmp_path / "x")["a"], array)


def test_mapped_arrays_are_aligned(tmp_path: Path) -> None:
    arrays = {f"a{n}{dtype}": np.ones(n, dtype) for n in (1, 3) for dtype in DTYPES}
    store_arrays(tmp_path / "x", arrays)
    assert all(array.flags.aligned for array in map_arrays(tmp_path / "x").values())


@settings(max_examples=200)
@given(st.data())
def test_damaged_arrays_are_arrays_or_a_clear_error_but_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Large folders are opened without checksums, so any byte may have changed."""
    file = tmp_path_factory.mktemp("damage") / "x.safetensors"
    store_arrays(file, {"a": np.arange(5), "b": np.ones((2, 3), np.float32)})
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        for array in map_arrays(file).values():
            array.sum()
    except ModelFormatError as error:
        assert "x.safetensors is damaged" in str(error)


@pytest.mark.parametrize(
    "header",
    [
        5,
        None,
        [],
        {"a": 1},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        {"a": {"dtype": "U8", "shape": [4], "data_offsets": [-4, 0]}},
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [200], "data_offsets": [0, 800]}},
        {"a": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "U8", "shape": [2**40, 2**40], "data_offsets": [0, 0]}},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_their_file_are_refused(tmp_path: Path, header: Any) -> None:
    head = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(64))
    with pytest.raises(ModelFormatError, match=r"x\.safetensors is damaged .*; save the model again"):
        map_arrays(tmp_path / "x.safetensors")
