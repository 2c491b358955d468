"""CONV_2D of TensorFlow Lite Micro, 16-bit activations with a 32-bit bias: the accumulator has 32 bits too.

Operands and options as in the reference kernel; quantized_bias_type is not looked at.
Source: tflite-micro (October 2026), conv.cc ConvEval.
"""

from __future__ import annotations

from tflq.kernels.conv_2d.reference import prepare_quantized
from tflq.kernels.families.bias_width import as_wide_as_its_bias
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import SPEC, micro

KERNELS = valid(
    micro(SPEC), Kernel("CONV_2D", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 8))
)
