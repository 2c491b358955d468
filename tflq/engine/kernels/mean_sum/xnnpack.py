"""MEAN and SUM of 8-bit codes by XNNPACK. Operands, options and refusals: tflq/engine/kernels/mean_sum/reference.py.

LiteRT 2.3: one float32 multiplier of the raw sum, one float32 addition, one rounding; codes are read as they are
declared. LiteRT 1.2 to 2.0: the same, but rounded half away. Up to LiteRT 1.0: MEAN over height and width of images
alone, by the global average pooling.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's qs8 and qu8 mean and reductions. LiteRT 1.0 and 1.4
xnnpack_delegate.cc VisitMeanNode, VisitReduceNode; XNNPACK's global average pooling and reduce, qs8 and qu8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import Reduced, reduced_axes, sum_int32
from tflq.engine.kernels.families.xnnpack_reductions import takes
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.mean_sum.images import has_image_axes
from tflq.engine.kernels.mean_sum.reference import mean_rows, sum_rows
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

    reduced: Reduced
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


def _prepare_scaled(node: Node, reduced: Reduced, scale: np.float32, rounded: Rounded) -> Prepared:
    """Prepare for `scale`, LSB of output per LSB of the sum. All real arithmetic is float32, left to right."""
    x, y = node.input(0), node.outputs[0]
    offset = np.float32(y.zero_point) - np.float32(reduced.count * x.zero_point) * scale
    return Prepared((reduced.shape,), OpData(reduced, scale, offset, CARRIER[x.type], rounded), evaluate)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Rounding: float32, product and sum apart, then to codes. Overflow: the sum wraps int32."""
    real = sum_int32(data.reduced.rows(x)).astype(np.float32) * data.scale + data.offset
    codes: Array = data.rounded(np.clip(real, *type_range(data.dtype))).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


@dataclass(frozen=True, slots=True, eq=False)
class PoolData:
    """Constants of the global average pooling."""

    reduced: Reduced
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


KERNELS = (
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
