"""MEAN, SUM by XNNPACK.

MEAN and SUM of 8-bit codes by XNNPACK. Operands, options and refusals: tflq/engine/kernels/mean_sum.py.

LiteRT 2.3: one float32 multiplier of the raw sum, one float32 addition, one rounding; codes are read as they are
declared. LiteRT 1.2 to 2.0: the same, but rounded half away. Up to LiteRT 1.0: MEAN over height and width of images
alone, by the global average pooling.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's qs8 and qu8 mean and reductions. LiteRT 1.0 and 1.4
xnnpack_delegate.cc VisitMeanNode, VisitReduceNode; XNNPACK's global average pooling and reduce, qs8 and qu8.

MEAN and SUM of float32 by XNNPACK on x86-64. Operands and options: tflq/engine/kernels/mean_sum.py.

The order of the sums: tflq/engine/kernels/families/xnnpack.py. A mean is scaled by the reciprocal of the count.
Squares of another operator (MUL of a tensor with itself, SQUARE) are summed in one go with the multiplication.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import (
    ReducedAxes,
    add,
    over_axes,
    reduced_axes,
    sum_int32,
    takes,
    takes_floats,
)
from tflq.engine.kernels.families.xnnpack import XnnpackSums
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, in_turn, valid
from tflq.engine.kernels.mean_sum import has_image_axes, mean_rows, sum_rows
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import nearest_half_away
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array

Rounded = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a scaled sum."""

    reduced: ReducedAxes
    scale: np.float32  # LSB of output per LSB of the sum
    offset: np.float32  # both zero points, LSB of output
    dtype: np.dtype[Any]
    rounded: Rounded


def prepare_mean(node: Node, arithmetic: Arithmetic, rounded: Rounded = np.rint) -> Prepared:
    """Divide by n as a float32 product with 1 / n."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale * (np.float32(1) / np.float32(reduced.count))
    return _prepare_scaled(node, reduced, scale, rounded)


def prepare_sum(node: Node, arithmetic: Arithmetic, rounded: Rounded = np.rint) -> Prepared:
    """Scale by a float32 quotient."""
    return _prepare_scaled(node, reduced_axes(node), node.input(0).scale / node.outputs[0].scale, rounded)


def _prepare_scaled(node: Node, reduced: ReducedAxes, scale: np.float32, rounded: Rounded) -> Prepared:
    """Prepare for `scale`, LSB of output per LSB of the sum. All real arithmetic is float32, left to right."""
    x, y = node.input(0), node.outputs[0]
    offset = np.float32(y.zero_point) - np.float32(reduced.count * x.zero_point) * scale
    return Prepared((reduced.shape,), OpData(reduced, scale, offset, CARRIER[x.type], rounded), evaluate)


@filling(lambda data, *_: (data.reduced.shape, data.dtype))
def evaluate(data: OpData, out: Array, x: Array, axes: Array) -> Call:
    """Rounding: float32, product and sum apart, then to codes. Overflow: the sum wraps int32."""
    rows, fill = data.reduced.bound(x)
    codes, sums = out.reshape(rows.shape[0], rows.shape[2]), np.empty((rows.shape[0], rows.shape[2]), np.int32)

    def scale() -> None:
        real = sums.astype(np.float32) * data.scale + data.offset
        codes[...] = data.rounded(np.clip(real, *type_range(data.dtype))).astype(data.dtype)

    return in_turn([*fill, partial(sums.fill, 0), over_axes(add).bound(rows, sums, False), scale])


@dataclass(frozen=True, slots=True, eq=False)
class PoolData:
    """Constants of the global average pooling."""

    reduced: ReducedAxes
    zeros: int  # zero point of the input times the number of summands, LSB of input
    scale: np.float32  # LSB of the sum -> LSB of output
    zero_point: int  # LSB of output
    dtype: np.dtype[Any]


def takes_image(node: Node) -> bool:
    """Return whether the axes are 1 and 2 of four dimensions."""
    return takes(node) and has_image_axes(node)


def prepare_pool(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the multiplier scale / (scale * n) in float32.

    Source: XNNPACK global-average-pooling-nwc.c xnn_create_global_average_pooling_nwc_qs8 and _qu8.
    """
    x, y = node.input(0), node.outputs[0]
    ratio = float(x.scale / y.scale)
    if not 2.0**-8 <= ratio < 2.0**8:
        node.reject("XNNPACK creates no average pooling", y, expected="a ratio of scales from 1/256 to 256", got=ratio)
    reduced = reduced_axes(node)
    scale = x.scale / (y.scale * np.float32(reduced.count))
    data = PoolData(reduced, x.zero_point * reduced.count, scale, y.zero_point, CARRIER[x.type])
    return Prepared((reduced.shape,), data, eval_pool)


def eval_pool(data: PoolData, x: Array, axes: Array) -> Array:
    """Rounding: one float32 product, half to even. Overflow: the sum wraps int32."""
    centred = sum_int32(data.reduced.rows(x)) - np.int64(data.zeros).astype(np.int32)
    whole = np.rint(centred.astype(np.float32) * data.scale) + np.float32(data.zero_point)
    codes: Array = np.clip(whole, *type_range(data.dtype)).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


def _take(rows: tuple[Kernel, ...], rule: Callable[[Node], bool] = takes) -> tuple[Kernel, ...]:
    return tuple(delegate(row, rule) for row in rows)


_XNNPACK = (
    *valid(
        xnnpack("litert-2.1"),
        *_take(mean_rows(prepare_mean, "uint8", "int8")),
        *_take(sum_rows(prepare_sum, "uint8", "int8")),
    ),
    *valid(
        xnnpack("litert-1.4", "litert-2.0"),
        *_take(mean_rows(partial(prepare_mean, rounded=nearest_half_away), "uint8", "int8")),
        *_take(sum_rows(partial(prepare_sum, rounded=nearest_half_away), "uint8", "int8")),
    ),
    *valid(xnnpack(until="litert-1.0"), *_take(mean_rows(prepare_pool, "uint8", "int8"), takes_image)),
)


@dataclass(frozen=True, slots=True, eq=False)
class FloatsData:
    """Constants."""

    sums: XnnpackSums
    shape: Shape  # of the output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Merge the axes."""
    data = FloatsData(XnnpackSums.of_node(node, arithmetic.xnnpack_lanes), reduced_axes(node).shape)
    return Prepared((data.shape,), data, evaluate_xnnpack_floats)


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate_xnnpack_floats(data: FloatsData, out: Array, x: Array, axes: Array) -> Call:
    """Rounding: every sum and product to float32. Subnormal numbers are zeros."""
    return data.sums.into(x, out.reshape(-1))


def _take_xnnpack_floats(rows: Callable[..., tuple[Kernel, ...]]) -> tuple[Kernel, ...]:
    return tuple(replace(delegate(row, takes_floats), sums_squares=True) for row in rows(prepare, "float32"))


_XNNPACK_FLOATS = valid(
    xnnpack("litert-2.1", cpu="x86-64"), *_take_xnnpack_floats(mean_rows), *_take_xnnpack_floats(sum_rows)
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
