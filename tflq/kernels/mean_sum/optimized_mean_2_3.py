"""MEAN of 8-bit codes in 2.3: images as in 2.5; every other form is half a step too high where it is rescaled.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: TensorFlow 2.3 lite/kernels/reduce.cc EvalMean; reference_ops.h Mean, QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import earlier_mean_2_12 as mean_2_12
from tflq.kernels.mean_sum.optimized_mean import is_over_image
from tflq.kernels.mean_sum.optimized_mean_2_5 import prepare_over_image
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Images have one multiplier of the raw sum; other forms have half a step in their bias."""
    if is_over_image(node):
        return prepare_over_image(node, arithmetic)
    prepared = mean_2_12.prepare_general(node, arithmetic)
    if prepared.eval is not mean_2_12.eval_rescaled:
        return prepared
    raised = replace(prepared.data, bias=prepared.data.bias + np.float32(0.5))
    return Prepared(prepared.shapes, raised, mean_2_12.eval_rescaled)


KERNELS = valid(
    opt(until="tf-2.3", vectors=True),
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 2), AXES) for t in ("uint8", "int8")),
)
