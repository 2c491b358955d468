"""MEAN of 8-bit images up to 2.5: what the zero point of the input makes is cut off towards zero, not rounded.

Every other form is that of 2.12. Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: TensorFlow 2.5 optimized/integer_ops/mean.h Mean; optimized_ops.h Mean (uint8).
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.earlier_mean_2_12 import prepare_general
from tflq.kernels.mean_sum.optimized_mean import is_over_image, prepare_biased
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Images: zero point * scale / scale in float32, towards zero."""
    return (prepare_over_image if is_over_image(node) else prepare_general)(node, arithmetic)


def prepare_over_image(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The bias is what is left of the output's zero point."""
    x, y = node.input(0), node.outputs[0]
    shifted = np.float32(x.zero_point) * x.scale / y.scale
    return prepare_biased(node, arithmetic, y.zero_point - int(shifted))


KERNELS = valid(
    opt(until="tf-2.5", vectors=True),
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 3), AXES) for t in ("uint8", "int8")),
)
