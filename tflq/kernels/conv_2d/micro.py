"""CONV_2D of 16-bit activations with a 32-bit bias in TensorFlow Lite Micro: the accumulator has 32 bits, too.

Operands and options as in the reference kernel; quantized_bias_type is ignored. CMSIS-NN gets no scratch buffer for
these models and writes nothing: refused.
Source: tflite-micro (October 2026), conv.cc ConvEval. tflite-micro (August 2026), cmsis_nn/conv.cc Prepare asks for a
buffer only if the bias has 64 bits or is absent; CMSIS-NN 99f736a, arm_convolve_s16 returns an error without one, which
a release build ignores.
"""

from __future__ import annotations

from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.kernels.conv_2d.reference import prepare_quantized
from tflq.kernels.families.bias_width import as_wide_as_its_bias
from tflq.kernels.kernel import Kernel, Node, valid
from tflq.kernels.validity import SPEC, cmsis_nn, micro
from tflq.numerics.arithmetic import Arithmetic


def refuse_int32_bias(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator: nothing is written."""
    raise UndefinedResultError(node.op, "16-bit activations with a 32-bit bias get no scratch buffer")


KERNELS = (
    *valid(micro(SPEC), Kernel("CONV_2D", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 8))),
    *valid(cmsis_nn(), Kernel("CONV_2D", "int16 int8 int32 -> int16", refuse_int32_bias, (1, 8))),
)
