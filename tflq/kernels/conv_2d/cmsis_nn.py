"""CONV_2D of 16-bit activations with a 32-bit bias: the library gets no scratch buffer and writes nothing. Refused.

Source: tflite-micro (August 2026), cmsis_nn/conv.cc Prepare asks for a buffer only where the bias has 64 bits or is
absent; CMSIS-NN 99f736a, arm_convolve_s16 returns an error without one, which a release build does not look at.
"""

from __future__ import annotations

from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Kernel, Node, valid
from tflq.kernels.validity import cmsis_nn
from tflq.numerics.arithmetic import Arithmetic


def refuse_int32_bias(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Nothing to rely on."""
    raise UndefinedResultError(node.op, "16-bit activations with a 32-bit bias get no scratch buffer")


KERNELS = valid(cmsis_nn(), Kernel("CONV_2D", "int16 int8 int32 -> int16", refuse_int32_bias, (1, 8)))
