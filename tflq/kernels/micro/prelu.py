"""PRELU of TensorFlow Lite Micro: its multipliers are evaluated in float64.

| operand | shape           | types                       | quantization |
|---------|-----------------|-----------------------------|--------------|
| x       | any             | int8, int16                 | per tensor   |
| alpha   | broadcasts to x | int8                        | per tensor   |
| y       | as x            | as x                        | per tensor   |

Source: tflite-micro (October 2026), prelu_common.cc CalculatePreluParams.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference import prelu
from tflq.numerics.arithmetic import Arithmetic


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """scale(x) / scale(y), and scale(x) * scale(alpha) / scale(y), every step in float64."""
    x, alpha, y = (np.float64(operand.scale) for operand in (node.input(0), node.input(1), node.outputs[0]))
    prepared = prelu.prepare_quantized(node, arithmetic)
    stages = {"positive": arithmetic.requantize(x / y), "negative": arithmetic.requantize(x * alpha / y)}
    return replace(prepared, data=replace(prepared.data, **stages))


KERNELS = tuple(Kernel("PRELU", f"{t} int8 -> {t}", prepare_quantized, (1, 1)) for t in ("int8", "int16"))
