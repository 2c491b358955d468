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
Source: tflite-micro (October 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference, EvalInt16SvdfReference; sources
of August 2026 evaluate the multipliers in float32.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.svdf import reference as svdf
from tflq.kernels.validity import micro
from tflq.numerics.arithmetic import Arithmetic


def prepare_int8_state(node: Node, arithmetic: Arithmetic, real: type[np.floating[Any]] = np.float64) -> Prepared:
    """Prepare SVDF with an int8 state, which has a zero point; the int16 state has none."""
    return svdf.prepare_integer(node, arithmetic, np.int8, node.input(svdf.STATE).zero_point, real)


KERNELS = valid(
    micro(),
    Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_int8_state, (1, 4)),
    Kernel("SVDF", "int8 int8 int16 int32? int16 -> int8", partial(svdf.prepare_integer, real=np.float64), (1, 4)),
)
