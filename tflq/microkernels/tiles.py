"""Micro-kernels as functions that compiled code calls: emitted for numba, and defined in plain Python."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tflq.jit.compiled import Array, Compiled, Int
from tflq.microkernels.kernel import Kernel
from tflq.numerics.rounding import clamp, wrap_int32


class EmittedTile(Compiled[..., None]):
    """A tile of one kernel: `python` defines it, compiled code calls what `emission` writes."""

    writes_code = True

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(definition(kernel))
        self.kernel = kernel

    def digest(self) -> str:
        """Return a digest of the kernel and of the code that writes it."""
        return hashlib.sha256(f"{self.kernel} {sources()}".encode()).hexdigest()[:16]

    def _linked(self) -> Any:
        emitted: Callable[..., None] = _intrinsic(self.kernel)
        return emitted


@cache
def sources() -> str:
    """Return a digest of the files that write code."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for name in ("emission", "sum_emission", "sums", "tap_emission", "taps", "tiles", "vectors"):
        digest.update((folder / f"{name}.py").read_bytes())
    return digest.hexdigest()


def definition(kernel: Kernel) -> Callable[..., None]:
    """Return the definition of a tile on scalars."""
    tile = kernel.tile
    group, columns = tile.form.group, tile.columns

    def tile_into(
        rows: Array,
        row: Int,
        weights: Array,
        panel: Int,
        constants: Array,
        terms: Array,
        zero_point: Int,
        low: Int,
        high: Int,
        out: Array,
        out_row: Int,
        out_column: Int,
    ) -> None:
        """Compute out[out_row + r, out_column + c] = clamp(scale(bias[c] + terms[row + r] + sum of products) + zero
        point).

        `rows` (R, steps * group) holds a row's values in groups, `weights` (panels, steps, columns * group) a column's,
        `constants` (panels, words) the layout of packing.constants, `terms` one int32 a row. All are contiguous. The
        caller ensures that rows, panel and the whole tile lie inside their arrays; there is one step at least.
        """
        matrix = weights[panel].reshape(-1, columns, group).transpose(0, 2, 1).reshape(-1, columns).astype(np.int64)
        biases, *words = unpacked(kernel.constants, columns, constants[panel])
        for r in range(tile.rows):
            sums = biases + rows[row + r, : len(matrix)].astype(np.int64) @ matrix
            if not tile.form.is_wide:
                sums = sums + np.int64(terms[row + r])
            for c in range(columns):
                value, place = wrap_int32(sums[c]), 0
                for step in kernel.steps:
                    value = step.define(value, *(w[c] for w in words[place : place + len(step.types)]))
                    place += len(step.types)
                out[out_row + r, out_column + c] = clamp(wrap_int32(value + zero_point), low, high)

    return tile_into


def unpacked(kinds: Sequence[str], columns: int, words: Array) -> list[Array]:
    """Return biases and steps' constants of `columns` columns, one array each, of these types."""
    data, at, arrays = words.tobytes(), 0, []
    for kind in map(np.dtype, kinds):
        arrays.append(np.frombuffer(data, kind, columns, at))
        at += kind.itemsize * columns
    return arrays


def _intrinsic(kernel: Kernel) -> Any:
    """Return the tile as a numba intrinsic with the arguments of its definition."""
    from numba.core import types
    from numba.extending import intrinsic

    from tflq.microkernels.emission import Operands, emit_function
    from tflq.microkernels.vectors import I8, I32

    @intrinsic  # type: ignore[untyped-decorator]
    def tile_into(
        typing: Any,
        rows: Any,
        row: Any,
        weights: Any,
        panel: Any,
        constants: Any,
        terms: Any,
        zero_point: Any,
        low: Any,
        high: Any,
        out: Any,
        out_row: Any,
        out_column: Any,
    ) -> Any:
        argument_types = (rows, row, weights, panel, constants, terms, zero_point, low, high, out, out_row, out_column)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def array(position: int) -> Any:
                return context.make_array(argument_types[position])(context, builder, arguments[position])

            def number(position: int) -> Any:
                return context.cast(builder, arguments[position], argument_types[position], types.int64)

            def address(position: int, *indices: Any) -> Any:
                whole = array(position)
                strides = [builder.extract_value(whole.strides, axis) for axis in range(len(indices))]
                offsets = [builder.mul(i, s) for i, s in zip(indices, strides, strict=True)]
                place = builder.bitcast(whole.data, I8.as_pointer())
                for offset in offsets:
                    place = builder.gep(place, [offset])
                return place

            operands = Operands(
                rows=address(0, number(1)),
                row_step=builder.extract_value(array(0).strides, 0),
                weights=address(2, number(3)),
                steps=builder.extract_value(array(2).shape, 1),
                constants=address(4, number(3)),
                terms=address(5, number(1)),
                zero_point=builder.trunc(number(6), I32),
                low=builder.trunc(number(7), I32),
                high=builder.trunc(number(8), I32),
                codes=address(9, number(10), number(11)),
                code_step=builder.extract_value(array(9).strides, 0),
            )
            builder.call(emit_function(builder.module, kernel), list(operands))
            return context.get_dummy_value()

        return types.void(*argument_types), generate

    return tile_into
