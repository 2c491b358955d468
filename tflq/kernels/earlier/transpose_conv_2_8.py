"""TRANSPOSE_CONV of 16-bit activations up to 2.8: accumulators have 64 bits, as in later releases again.

Operands and refusals: tflq/kernels/reference/transpose_conv.py.
Source: TensorFlow 2.8 lite/kernels/transpose_conv.cc EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.earlier.transpose_conv_2_11 import without_activations
from tflq.kernels.reference.transpose_conv import KERNELS as REFERENCE

KERNELS = without_activations(row for row in REFERENCE if row.signature.makes(TensorType.INT16))
