"""SUM of 8-bit codes in 2.3: raw where quantizations are equal, else half a step too high; it wraps.

Operands, options and other refusals: tflq/kernels/mean_sum/sum.py.
Source: TensorFlow 2.3 lite/kernels/reduce.cc EvalSum; reference_ops.h QuantizedMeanOrSum.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.earlier_sum_2_13 import codes_where_equal
from tflq.kernels.mean_sum.tf1_sum import OpData, eval_float
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare_sum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Float32 throughout, left to right."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale * np.float32(reduced.count) + np.float32(0.5)
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, y.zero_point), eval_float)


KERNELS = valid(
    opt(until="tf-2.3"),
    *(Kernel("SUM", f"{t} int32 -> {t}", codes_where_equal(prepare_sum), (1, 2), AXES) for t in ("uint8", "int8")),
)
