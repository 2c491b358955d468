"""BATCH_MATMUL of TensorFlow Lite Micro: its multiplier is evaluated in float64.

Operands and options as in the reference kernel.
Source: tflite-micro 0.dev20261023 as it was seen to run; sources of August 2026 (kernel_util.cc
GetQuantizedConvolutionMultipler) round the product of the scales to float32.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Kernel, Node, Operand
from tflq.kernels.reference import batch_matmul


def float64_multiplier(node: Node, x: Operand, y: Operand, out: Operand) -> np.float64:
    """scale(x) * scale(y) / scale(out), every step in float64."""
    product = np.float64(x.scale) * np.float64(y.scale)
    node.check(bool(product >= 0), "product of the scales is negative", y, got=float(product))
    return np.float64(product / np.float64(out.scale))


prepare_quantized = partial(batch_matmul.prepare_quantized, multiplier=float64_multiplier)

KERNELS = (
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare_quantized, (1, 4)),
    Kernel("BATCH_MATMUL", "int16 int8|int16 -> int16", prepare_quantized, (1, 4)),
)
