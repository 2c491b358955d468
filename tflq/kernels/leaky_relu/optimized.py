"""LEAKY_RELU of 16-bit codes by the optimized resolver: products are rounded with their sign, as in releases up to 2.0.

Operands, options and refusals: tflq/kernels/leaky_relu/reference.py.
Source: LiteRT 2.3, activations.cc LeakyReluEval, kernel type kGenericOptimized.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.kernel import valid
from tflq.kernels.leaky_relu import earlier as leaky_relu
from tflq.kernels.validity import opt

KERNELS = valid(opt("litert-2.3"), *(row for row in leaky_relu.KERNELS if row.signature.makes(TensorType.INT16)))
