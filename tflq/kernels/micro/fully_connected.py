"""FULLY_CONNECTED of TensorFlow Lite Micro, 16-bit activations: the bias's own type says how wide the accumulator is.

Operands and options as in the reference kernel, but for quantized_bias_type, which counts only without a bias.
Source: tflite-micro (October 2026), fully_connected.cc FullyConnectedEval.
"""

from __future__ import annotations

from tflq.kernels.kernel import Kernel
from tflq.kernels.micro.bias_width import as_wide_as_its_bias
from tflq.kernels.reference.fully_connected import prepare_quantized

KERNELS = (
    Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", as_wide_as_its_bias(prepare_quantized), (1, 14)),
)
