"""Tiles of sums of products, with all sums in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.microkernels import called
from tflq.engine.microkernels.emitted import Arguments
from tflq.engine.microkernels.kernel import Kernel
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.typing import Array


@cache
def address_of(kernel: Kernel) -> int:
    """Return the address of a tile, which `tile_into` takes."""
    return tile_into.address(kernel, definition(kernel))


def definition(kernel: Kernel) -> Callable[..., None]:
    """Return the definition of a tile on scalars, with the parameters of `tile_into` from `rows` on."""
    tile = kernel.tile
    group, columns = tile.form.group, tile.columns

    def define(
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
        out_byte: Int,
    ) -> None:
        codes = out.view(kernel.code)
        out_column = out_byte // codes.itemsize
        matrix = weights[panel].reshape(-1, columns, group).transpose(0, 2, 1).reshape(-1, columns).astype(np.int64)
        biases, *words = unpack(kernel.constants, columns, constants[panel])
        for r in range(tile.rows):
            sums = biases + rows[row + r, : len(matrix)].astype(np.int64) @ matrix
            if not tile.form.is_wide:
                sums = sums + np.int64(terms[row + r])
            for c in range(columns):
                value, place = wrap_int32(sums[c]), 0
                for step in kernel.steps:
                    value = step.define(value, *(w[c] for w in words[place : place + len(step.types)]))
                    place += len(step.types)
                codes[out_row + r, out_column + c] = clamp(wrap_int32(value + zero_point), low, high)

    return define


def unpack(kinds: Sequence[str], columns: int, words: Array) -> list[Array]:
    """Return biases and steps' constants of `columns` columns, one array each, of these types."""
    data, at, arrays = words.tobytes(), 0, []
    for kind in map(np.dtype, kinds):
        arrays.append(np.frombuffer(data, kind, columns, at))
        at += kind.itemsize * columns
    return arrays


def _write(module: Any, kernel: Kernel, name: str) -> Any:
    from tflq.engine.microkernels.emission import emit_function

    return emit_function(module, kernel, name)


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.emission import Operands

    row, panel = at.number("row"), at.number("panel")
    return Operands(
        rows=at.address("rows", row),
        row_step=at.step("rows", 0),
        weights=at.address("weights", panel),
        steps=at.size("weights", 1),
        constants=at.address("constants", panel),
        terms=at.address("terms", row),
        zero_point=at.code("zero_point"),
        low=at.code("low"),
        high=at.code("high"),
        codes=at.address("out", at.number("out_row"), at.number("out_byte")),
        code_step=at.step("out", 0),
    )


@called.by_address(_write, _operands)
@compiled
def tile_into(
    at: Int,
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
    out_byte: Int,
) -> None:
    """Compute codes[out_row + r, first + c] = clamp(scale(bias[c] + terms[row + r] + sum of products) + zero point) by
    the tile at an address.

    `out` holds the bytes of `codes`, whose column `first` begins at `out_byte`. `rows` (R, steps * group) holds a row's
    values in groups, `weights` (panels, steps, columns * group) a column's, `constants` (panels, words) the layout of
    packing.constants, `terms` one int32 a row. All are contiguous along their last axis.

    The caller guarantees: `at` is that of a kernel for these operands; rows, panel and the whole tile lie inside their
    arrays; there is one step at least.
    """
    called.definition_at(at)(rows, row, weights, panel, constants, terms, zero_point, low, high, out, out_row, out_byte)
