"""Tiles of sums of products, with all sums in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int
from tflq.engine.microkernels.emitted import Arguments, Emitted, intrinsic_of
from tflq.engine.microkernels.kernel import Kernel
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.typing import Array


def tile_of(kernel: Kernel) -> Emitted:
    """Return the function of a tile."""
    return Emitted(kernel, definition(kernel), _written)


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


def _written(kernel: Kernel, definition: Callable[..., None]) -> Any:
    from tflq.engine.microkernels.emission import Operands, emit_function

    def write(at: Arguments) -> None:
        row, panel = at.number("row"), at.number("panel")
        operands = Operands(
            rows=at.address("rows", row),
            row_step=at.step("rows", 0),
            weights=at.address("weights", panel),
            steps=at.size("weights", 1),
            constants=at.address("constants", panel),
            terms=at.address("terms", row),
            zero_point=at.code("zero_point"),
            low=at.code("low"),
            high=at.code("high"),
            codes=at.address("out", at.number("out_row"), at.number("out_column")),
            code_step=at.step("out", 0),
        )
        at.builder.call(emit_function(at.builder.module, kernel), list(operands))

    return intrinsic_of(definition, write)
