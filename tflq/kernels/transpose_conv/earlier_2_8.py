"""TRANSPOSE_CONV of 16-bit activations up to 2.8: accumulators have 64 bits, as in later releases again.

Operands and refusals: tflq/kernels/transpose_conv/reference.py.
Source: TensorFlow 2.8 lite/kernels/transpose_conv.cc EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.kernel import valid
from tflq.kernels.transpose_conv.earlier_2_11 import without_activations
from tflq.kernels.transpose_conv.reference import KERNELS as REFERENCE
from tflq.kernels.validity import tflite

KERNELS = valid(
    tflite(until="tflite-2.7"), *without_activations(row for row in REFERENCE if row.signature.makes(TensorType.INT16))
)
