"""SVDF of TensorFlow Lite Micro: multipliers in float64, and a state of 8 bits, which other runtimes misread.

| operand  | shape     | types       | quantization          |
|----------|-----------|-------------|-----------------------|
| x        | N, I      | int8        | per tensor            |
| features | F, I      | int8        | per tensor, symmetric |
| time     | F, M      | int8, int16 | per tensor, symmetric |
| bias     | F / rank  | int32       |                       |
| state    | N, F * M  | as time     | per tensor, variable  |
| y        | N, F/rank | int8        | per tensor            |

Options: rank; fused_activation_function RELU.
tflite-micro up to August 2026 evaluates the multipliers in float32, and so would LiteRT.
Source: tflite-micro (August and October 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference,
EvalInt16SvdfReference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.svdf import reference
from tflq.kernels.validity import micro, spec
from tflq.numerics.arithmetic import Arithmetic


def prepare_int8_state(node: Node, arithmetic: Arithmetic, real: type[np.floating[Any]] = np.float64) -> Prepared:
    """Prepare SVDF with an int8 state, which has a zero point; the int16 state has none."""
    return reference.prepare_integer(node, arithmetic, np.int8, node.input(reference.STATE).zero_point, real)


KERNELS = (
    *valid(
        micro(),
        Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_int8_state, (1, 4)),
        Kernel(
            "SVDF", "int8 int8 int16 int32? int16 -> int8", partial(reference.prepare_integer, real=np.float64), (1, 4)
        ),
    ),
    *valid(
        spec(),
        Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", partial(prepare_int8_state, real=np.float32), (1, 4)),
    ),
)
