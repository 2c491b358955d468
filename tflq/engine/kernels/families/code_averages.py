"""AVERAGE_POOL_2D as an average of codes: a sum and one division, with its fields.

Devices differ in the rounding of the quotient, in whether the zero point is subtracted before it, in the count of taps
by which they divide, in how they divide, and in the width of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families import pooling
from tflq.engine.kernels.geometry.taps import read_tap
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import DIVISIONS, QUOTIENTS, ROUNDINGS, Ints
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("AVERAGE_POOL_2D",)
#: Widths of sums by name.
SUMS: Mapping[str, Callable[[Ints], Ints]] = {
    "exact": lambda sums: sums,
    "16 bits that wraps": lambda sums: sums.astype(np.int16).astype(np.int64),
    "16 bits that saturates": lambda sums: np.clip(sums, -(2**15), 2**15 - 1),
}
#: Floats of reciprocals by name.
_FLOATS: Mapping[str, type[np.floating[Any]]] = {
    "reciprocal in float16": np.float16,
    "reciprocal in float32": np.float32,
}
DIVISION, RECIPROCAL = "division", "reciprocal of 16 bits"
#: Reciprocals as whole numbers in units of 2**-bits, and of the window's height and width one after the other.
_FIXED: Mapping[str, int] = {f"reciprocal of {bits} bits": bits for bits in (8, 12, 15, 16, 20, 24, 31)}
_OF_SIDES: Mapping[str, int] = {f"reciprocals of height and width of {bits} bits": bits for bits in (8, 12, 15, 16)}
#: Reciprocals with a mantissa of some bits, cut off or rounded.
_MANTISSAS: Mapping[str, int] = {f"reciprocal with a mantissa of {bits} bits": bits for bits in (7, 8, 15, 16, 31)}
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "rounding": tuple(QUOTIENTS),
    "zero_point": ("kept", "subtracted"),
    "count": ("taps inside", "whole window"),
    "quotient": (DIVISION, *_FIXED, *_OF_SIDES, *_MANTISSAS, *_FLOATS),
    "sum": tuple(SUMS),
}


@dataclass(frozen=True, slots=True)
class Average:
    """One point of the grammar of averages. Fields are spelled as files of profiles spell them."""

    rounding: str = "half away from zero"
    zero_point: str = "kept"
    count: str = "taps inside"
    quotient: str = DIVISION
    sum: str = "exact"

    def divide(self, total: Ints, count: Ints, width: Ints | None = None) -> Ints:
        """Return sums divided by counts above 0; `width` are the columns that make them, 1 if that is left out."""
        if self.quotient == DIVISION:
            return QUOTIENTS[self.rounding](total, count)
        if self.quotient in _FIXED:
            return DIVISIONS[self.rounding](*_times_inverse(total, count, _FIXED[self.quotient]))
        if self.quotient in _OF_SIDES:
            width = np.ones_like(count) if width is None else width
            product, bits = _times_inverse(total, width, _OF_SIDES[self.quotient])
            product, more = _times_inverse(product, count // width, _OF_SIDES[self.quotient])
            return DIVISIONS[self.rounding](product, bits + more)
        if self.quotient in _MANTISSAS:
            digits = np.frexp(count.astype(np.float64))[1].astype(np.int64)  # of the count in binary
            bits = _MANTISSAS[self.quotient] + digits - 1
            return DIVISIONS[self.rounding](*_times_inverse(total, count, bits))
        kind = _FLOATS[self.quotient]
        factor = (np.float32(1) / count.astype(np.float32)).astype(kind).astype(np.float32)
        return np.asarray(ROUNDINGS[self.rounding](total.astype(np.float32) * factor).astype(np.int64))


def _times_inverse(total: Ints, count: Ints, bits: Any) -> tuple[Ints, Ints]:
    """Return sums times 2**bits / count, rounded half up to whole numbers, and the bits."""
    one = np.int64(1) << np.asarray(bits, np.int64)
    inverse: Any = (one + (count >> 1)) // count
    return np.asarray(total * inverse, np.int64), np.broadcast_to(np.asarray(bits, np.int64), total.shape)


#: The reader of what a file states.
average_of = reader(Average, FIELDS, "an average")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `window` lies over the image; `zero_point` is that of the input, LSB."""

    window: Window
    zero_point: int
    clamp: Clamp
    point: Average
    dtype: np.dtype[Any]


def average(row: Kernel, point: Average) -> Kernel:
    """Return the row of AVERAGE_POOL_2D with another quotient."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = row.prepare(node, arithmetic)
        pool, x = prepared.data, node.input(0)
        if not isinstance(pool, pooling.OpData) or not x.is_quantized or len(pool.shape) != 4:
            node.refuse("is no average of windows of codes")
        clamp = Clamp(*map(int, pool.clamp))
        data = OpData(pool.window, int(x.zero_point), clamp, point, CARRIER[node.outputs[0].type])
        return replace(prepared, data=data, eval=eval_average)

    return replace(row, prepare=prepare, takes=None)


def eval_average(data: OpData, x: Array) -> Array:
    """Add the taps inside the image and divide once. Rounding: by the point."""
    zero = data.zero_point if data.point.zero_point == "subtracted" else 0
    image = x.astype(np.int64) - zero
    total, count = _sums(image, data.window), _sums(np.ones((1, *x.shape[1:3], 1), np.int64), data.window)
    if data.point.count == "whole window":
        count = np.full_like(count, data.window.kernel_h * data.window.kernel_w)
    across = _sums(np.ones((1, 1, x.shape[2], 1), np.int64), data.window._replace(kernel_h=1, out_h=1, pad_top=0))
    if data.point.count == "whole window":
        across = np.full_like(across, data.window.kernel_w)
    counts = (np.maximum(n, 1) for n in (count, across))
    quotient = data.point.divide(SUMS[data.point.sum](total), *counts) + zero
    return np.asarray(np.clip(quotient, *data.clamp).astype(data.dtype))


def _sums(image: Ints, at: Window) -> Ints:
    """Return sums over the windows, (N, out_h, out_w, C); taps outside the image are left out."""
    sums = np.zeros((image.shape[0], at.out_h, at.out_w, image.shape[3]), np.int64)
    for ky in range(at.kernel_h):
        for kx in range(at.kernel_w):
            sums += read_tap(image, at, ky, kx)
    return sums
