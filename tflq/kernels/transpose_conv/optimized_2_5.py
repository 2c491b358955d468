"""TRANSPOSE_CONV up to 2.5: the vector code of later releases, without fused activations.

Accumulators of 16-bit activations have 64 bits.

Source: TensorFlow 2.5 lite/kernels/transpose_conv.cc Eval, EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from tflq.kernels.kernel import valid
from tflq.kernels.transpose_conv.arm64_2_14 import KERNELS as BYTES
from tflq.kernels.transpose_conv.earlier_2_8 import KERNELS as INT16
from tflq.kernels.transpose_conv.earlier_2_11 import without_activations
from tflq.kernels.validity import opt

KERNELS = valid(opt(until="tf-2.5", vectors=True), *without_activations(BYTES), *INT16)
