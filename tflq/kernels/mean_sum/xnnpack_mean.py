"""MEAN of 8-bit codes by XNNPACK: one float32 multiplier of the raw sum, one float32 addition, one rounding.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's qs8 and qu8 mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.delegation import delegate
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.families.xnnpack_reductions import takes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    reduced: Reduced
    scale: np.float32  # LSB of output per LSB of the sum
    offset: np.float32  # both zero points, LSB of output
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The division by n is a float32 product with 1 / n."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    return prepare_scaled(node, reduced, x.scale / y.scale * (np.float32(1) / np.float32(reduced.count)))


def prepare_scaled(node: Node, reduced: Reduced, scale: np.float32) -> Prepared:
    """`scale`: LSB of output per LSB of the sum. All real arithmetic is float32, left to right."""
    x, y = node.input(0), node.outputs[0]
    offset = np.float32(y.zero_point) - np.float32(reduced.count * x.zero_point) * scale
    return Prepared((reduced.shape,), OpData(reduced, scale, offset, CARRIER[x.type]), evaluate)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Rounding: float32, product and sum apart, then half to even. Overflow: the sum wraps int32."""
    real = sum_int32(data.reduced.rows(x)).astype(np.float32) * data.scale + data.offset
    codes: Array = np.rint(np.clip(real, *type_range(data.dtype))).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


KERNELS = valid(
    xnnpack("litert-2.3"),
    *(delegate(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 3), AXES), takes) for t in ("uint8", "int8")),
)
