"""LEAKY_RELU up to LiteRT 2.0: a negative alpha is in the multiplier, so that products are rounded with their sign.

Half-way cases of a negative alpha round up; later releases round the magnitude up and apply the sign afterwards.
Operands, options and refusals: tflq/kernels/leaky_relu/reference.py.
Source: TensorFlow 2.14 lite/kernels/internal/reference/leaky_relu.h QuantizeLeakyRelu; quantization_util.cc
QuantizeMultiplier, whose mantissa has the sign of its argument.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.leaky_relu import reference as leaky_relu
from tflq.kernels.validity import tflite
from tflq.numerics.stages import OutputStage, StageOf


def sign_within(real: np.float64, stage_of: StageOf) -> tuple[OutputStage, int]:
    """The stage of `real` with its sign; nothing is left to apply."""
    return stage_of(real), 1


prepare_quantized = partial(leaky_relu.prepare_quantized, signed=sign_within)

KERNELS = valid(
    tflite(until="litert-2.0"),
    *(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare_quantized, (1, 2)) for t in ("uint8", "int8", "int16")),
)
