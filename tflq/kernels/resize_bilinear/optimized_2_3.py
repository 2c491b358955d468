"""RESIZE_BILINEAR of 8 bits in 2.3: uint8 in float32, cut off, as r1.15 has it; int8 in integers, half up and then cut
off towards zero.

Left of and above the first pixel's centre, int8 goes on along the line to the second one, and wraps.
Operands, options and refusals: tflq/kernels/resize_bilinear/reference.py.
Source: TensorFlow 2.3 lite/kernels/resize_bilinear.cc; optimized_ops.h ResizeBilinear (uint8); reference_ops.h
ResizeBilinearInteger (int8). The upper neighbour and the wrap: by 2.3.4's outputs.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.resize_bilinear.reference import ONE, OpData, Taps, integer_taps, prepare_with, truncating_divide
from tflq.kernels.resize_bilinear.tf1_optimized import KERNELS as UINT8
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

#: Bytes that an output element takes besides itself: its four neighbours, their sums.
_ELEMENT_BYTES = 40


def taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """The upper neighbour is always the next position, if there is one."""
    made = integer_taps(size, new_size, align, half)
    return replace(made, upper=np.minimum(made.lower + 1, size - 1))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Positions and weights in 1/1024 pixels."""
    data = prepare_with(node, taps)
    return Prepared((data.shape,), data, evaluate, scratch=_ELEMENT_BYTES * prod(data.shape))


def evaluate(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearInteger. Rounding: half a step added, then towards zero. Overflow: wraps 8 bits."""
    rows, columns = data.rows, data.columns
    lines = x[:, rows.lower] * rows.lower_weight[:, None, None] + x[:, rows.upper] * rows.upper_weight[:, None, None]
    total = lines[:, :, columns.lower] * columns.lower_weight[:, None]
    total += lines[:, :, columns.upper] * columns.upper_weight[:, None]
    return truncating_divide(total + ONE * ONE // 2, ONE * ONE).astype(np.int8)


KERNELS = valid(
    opt(until="tf-2.3"),
    *(replace(row, versions=(1, 3)) for row in UINT8),
    Kernel("RESIZE_BILINEAR", "int8 int32 -> int8", prepare, (1, 3), shape_operands=(1,)),
)
