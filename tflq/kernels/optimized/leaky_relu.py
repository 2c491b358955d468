"""LEAKY_RELU of 16-bit codes by the optimized resolver: products are rounded with their sign, as in releases up to 2.0.

Operands, options and refusals: tflq/kernels/reference/leaky_relu.py.
Source: LiteRT 2.3, activations.cc LeakyReluEval, kernel type kGenericOptimized.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.earlier import leaky_relu

KERNELS = tuple(row for row in leaky_relu.KERNELS if row.signature.makes(TensorType.INT16))
