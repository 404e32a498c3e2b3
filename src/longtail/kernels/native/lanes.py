"""Sixteen labels at once: a sparse row times sixteen weight columns in one sweep.

Weights of sixteen labels lie side by side, `weights[feature, lane]`, one cache line per feature. A row of
a text then needs one load per non-zero for all sixteen, where label after label would need sixteen
scattered ones: about 1.5 ns per non-zero for all lanes instead of 2 ns for each (benchmarks/README.md).
numba does not keep such an accumulator in registers, so these two loops are written as LLVM vectors;
LLVM maps them to whatever width the processor has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_LINE = 64
"""Bytes that a processor brings into its cache at once: all lanes of a feature."""

_INDEX = ir.IntType(64)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_FIRST = ir.Constant(ir.IntType(32), 0)
_ALL_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
# Sums may be fused and reordered inside a lane; infinities and NaN keep their meaning.
_LOOSE = ("contract", "reassoc")


def _spread(builder: Any, number: Any) -> Any:
    """Return a vector with `number` in every lane."""
    nothing = ir.Constant(_FLOATS, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, number, _FIRST), nothing, _ALL_FIRST)


def _lanes_at(builder: Any, data: Any, row: Any) -> Any:
    """Pointer to the lanes of `row` in an array (n, LANES)."""
    return builder.bitcast(builder.gep(data, [builder.mul(row, ir.Constant(_INDEX, LANES))]), _FLOATS.as_pointer())


def _data(context: Any, builder: Any, signature: Any, arguments: Any, at: int) -> Any:
    return context.make_array(signature.args[at])(context, builder, arguments[at]).data


@intrinsic
def dot_lanes(typing: Any, indices: Any, values: Any, start: Any, stop: Any, weights: Any, out: Any) -> Any:
    """out[:] = sum of values[p] * weights[indices[p], :] for p in start..stop."""
    signature = types.void(indices, values, start, stop, weights, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index, value, weight, target = (_data(context, builder, signature, arguments, at) for at in (0, 1, 4, 5))
        total = cgutils.alloca_once(builder, _FLOATS)
        builder.store(ir.Constant(_FLOATS, None), total)
        with cgutils.for_range_slice(builder, arguments[2], arguments[3], ir.Constant(_INDEX, 1)) as (at, _):
            feature = builder.zext(builder.load(builder.gep(index, [at])), _INDEX)
            lanes = builder.load(_lanes_at(builder, weight, feature), align=4)
            scaled = builder.fmul(_spread(builder, builder.load(builder.gep(value, [at]))), lanes, flags=_LOOSE)
            builder.store(builder.fadd(builder.load(total), scaled, flags=_LOOSE), total)
        builder.store(builder.load(total), builder.bitcast(target, _FLOATS.as_pointer()), align=4)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_lanes(typing: Any, indices: Any, values: Any, start: Any, stop: Any, step: Any, weights: Any) -> Any:
    """weights[indices[p], :] += values[p] * step[:] for p in start..stop."""
    signature = types.void(indices, values, start, stop, step, weights)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index, value, step, weight = (_data(context, builder, signature, arguments, at) for at in (0, 1, 4, 5))
        steps = builder.load(builder.bitcast(step, _FLOATS.as_pointer()), align=4)
        with cgutils.for_range_slice(builder, arguments[2], arguments[3], ir.Constant(_INDEX, 1)) as (at, _):
            feature = builder.zext(builder.load(builder.gep(index, [at])), _INDEX)
            place = _lanes_at(builder, weight, feature)
            scaled = builder.fmul(_spread(builder, builder.load(builder.gep(value, [at]))), steps, flags=_LOOSE)
            builder.store(builder.fadd(builder.load(place, align=4), scaled, flags=_LOOSE), place, align=4)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def fetch_lanes(typing: Any, indices: Any, start: Any, stop: Any, weights: Any) -> Any:
    """Ask the processor to bring `weights[indices[p], :]` for p in start..stop into its cache; changes nothing."""
    signature = types.void(indices, start, stop, weights)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index, weight = (_data(context, builder, signature, arguments, at) for at in (0, 3))
        with cgutils.for_range_slice(builder, arguments[1], arguments[2], ir.Constant(_INDEX, 1)) as (at, _):
            feature = builder.zext(builder.load(builder.gep(index, [at])), _INDEX)
            _fetch(builder, _lanes_at(builder, weight, feature))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def fetch_span(typing: Any, array: Any, start: Any, stop: Any) -> Any:
    """Ask the processor to bring `array[start:stop]`, numbers of 4 bytes, into its cache; changes nothing."""
    signature = types.void(array, start, stop)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature, arguments, 0)
        with cgutils.for_range_slice(builder, arguments[1], arguments[2], ir.Constant(_INDEX, _LINE // 4)) as (at, _):
            _fetch(builder, builder.gep(data, [at]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def fetch_row(typing: Any, rows: Any, row: Any) -> Any:
    """Ask the processor to bring `rows[row, :]`, at most a line of numbers, into its cache; changes nothing."""
    signature = types.void(rows, row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature, arguments, 0)
        _fetch(builder, builder.gep(data, [builder.mul(arguments[1], ir.Constant(_INDEX, LANES))]))
        return context.get_dummy_value()

    return signature, generate


def _fetch(builder: Any, place: Any) -> None:
    """Prefetch the line of `place` for reading, to stay in all caches."""
    whole, address = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [address, whole, whole, whole])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(prefetch, [builder.bitcast(place, address), *(ir.Constant(whole, number) for number in (0, 3, 1))])
