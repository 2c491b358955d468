"""CONV_2D of TensorFlow Lite Micro, 16-bit activations with a 32-bit bias: the accumulator has 32 bits too.

Operands and options as in the reference kernel; quantized_bias_type is not looked at.
Source: tflite-micro (October 2026), conv.cc ConvEval.
"""

from __future__ import annotations

from tflq.kernels.kernel import Kernel
from tflq.kernels.micro.bias_width import as_wide_as_its_bias
from tflq.kernels.reference.conv_2d import prepare_quantized

KERNELS = (Kernel("CONV_2D", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 8)),)
