"""MEAN of 8-bit codes by XNNPACK up to LiteRT 1.0: height and width of images, by its global average pooling.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: LiteRT 1.0 xnnpack_delegate.cc VisitMeanNode; XNNPACK's global average pooling, qs8 and qu8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.delegation import delegate
from tflq.kernels.families import xnnpack_reductions
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.optimized_mean import is_over_image
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    reduced: Reduced
    zeros: int  # zero point of the input times the number of summands, LSB of input
    scale: np.float32  # LSB of the sum -> LSB of output
    zero_point: int  # LSB of output
    dtype: np.dtype[Any]


def takes(node: Node) -> bool:
    """Axes 1 and 2 of four dimensions that are kept."""
    return xnnpack_reductions.takes(node) and is_over_image(node)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The multiplier is scale / (scale * n), all of it float32."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / (y.scale * np.float32(reduced.count))
    data = OpData(reduced, x.zero_point * reduced.count, scale, y.zero_point, CARRIER[x.type])
    return Prepared((reduced.shape,), data, evaluate)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Rounding: one float32 product, half to even. Overflow: the sum wraps int32."""
    centred = sum_int32(data.reduced.rows(x)) - np.int64(data.zeros).astype(np.int32)
    whole = np.rint(centred.astype(np.float32) * data.scale) + np.float32(data.zero_point)
    codes: Array = np.clip(whole, *type_range(data.dtype)).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


KERNELS = valid(
    xnnpack(until="litert-1.0"),
    *(delegate(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 3), AXES), takes) for t in ("uint8", "int8")),
)
