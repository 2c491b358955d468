"""RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1: x clipped to [0, inf), [0, 6], [0, 1], [-1, 1].

| operand | shape | types                                  | quantization                    |
|---------|-------|----------------------------------------|---------------------------------|
| x       | any   | float32, uint8, int8                   | per tensor                      |
|         |       | RELU, RELU6: int16                     | zero point 0                    |
| y       | as x  | as x                                   | per tensor, may differ from x's |

On AArch64, float32 is compared as tflq/engine/kernels/families/float_limits.py describes.
Source: LiteRT 2.3, activations.cc ReluPrepare, ReluEval, Relu6Eval, Relu0to1Eval, Relu1Eval.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.float_limits import NUMBERS, in_vectors, rectify
from tflq.engine.kernels.families.relu import kernels
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import tflite

RELU = kernels("RELU", 0.0, None, ("uint8", "int8", "int16"), (1, 3))
RELU6 = kernels("RELU6", 0.0, 6.0, ("uint8", "int8", "int16"), (1, 3))
RELU_N1_TO_1 = kernels("RELU_N1_TO_1", -1.0, 1.0, ("uint8", "int8"))

KERNELS = (
    *RELU,
    *RELU6,
    *kernels("RELU_0_TO_1", 0.0, 1.0, ("uint8", "int8")),
    *RELU_N1_TO_1,
    *valid(tflite(cpu="arm64"), Kernel("RELU", "float32 -> float32", rectify(np.inf, in_vectors), (1, 3))),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        Kernel("RELU6", "float32 -> float32", rectify(6.0, lambda a, b: NUMBERS), (1, 3)),
    ),
)
