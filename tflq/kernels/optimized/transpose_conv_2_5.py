"""TRANSPOSE_CONV up to 2.5: the vector code of later releases, without fused activations.

Accumulators of 16-bit activations have 64 bits.

Source: TensorFlow 2.5 lite/kernels/transpose_conv.cc Eval, EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from tflq.kernels.arm64.transpose_conv_2_14 import KERNELS as BYTES
from tflq.kernels.earlier.transpose_conv_2_8 import KERNELS as INT16
from tflq.kernels.earlier.transpose_conv_2_11 import without_activations

KERNELS = (*without_activations(BYTES), *INT16)
