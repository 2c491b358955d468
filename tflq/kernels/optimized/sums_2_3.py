"""ADD, SUB of 16-bit codes in 2.3: always by shifts, whatever the options say; broadcast operands are refused.

SUM of 8-bit codes: raw where quantizations are equal, else half a step too high; it wraps.
Operands, options and other refusals: tflq/kernels/reference/add.py, sub.py, sum.py.
Source: TensorFlow 2.3 lite/kernels/add.cc, sub.cc Prepare; reduce.cc EvalSum; reference_ops.h QuantizedMeanOrSum.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.earlier.sum_2_13 import codes_where_equal
from tflq.kernels.families.binary import both
from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.families.scaled_sum import prepare_pot, without_broadcast
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.tf1.sum import OpData, eval_float
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.scaling import checked_log2


def by_shifts(node: Node, sign: int) -> Prepared:
    """Zero points 0, scales powers of two, operands of one shape."""
    for operand in both(node):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
        is_pot = bool(operand.scale > 0) and checked_log2(operand.scale)[1]
        node.check(is_pot, "scale", operand, expected="a power of two", got=operand.scale)
    without_broadcast(node)
    return prepare_pot(node, sign)


def prepare_add(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a sum."""
    return by_shifts(node, 1)


def prepare_sub(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a difference."""
    return by_shifts(node, -1)


def prepare_sum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Float32 throughout, left to right."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale * np.float32(reduced.count) + np.float32(0.5)
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, y.zero_point), eval_float)


KERNELS = (
    Kernel("ADD", "int16 int16 -> int16", prepare_add, (1, 2)),
    Kernel("SUB", "int16 int16 -> int16", prepare_sub, (1, 3)),
    *(Kernel("SUM", f"{t} int32 -> {t}", codes_where_equal(prepare_sum), (1, 2), AXES) for t in ("uint8", "int8")),
)
