"""SVDF of TensorFlow Lite Micro: multipliers in float64, and a state of 8 bits, which other runtimes misread.

| operand  | shape     | types       | quantization          |
|----------|-----------|-------------|-----------------------|
| x        | N, I      | int8        | per tensor            |
| features | F, I      | int8        | per tensor, symmetric |
| time     | F, M      | int8, int16 | per tensor, symmetric |
| bias     | F / rank  | int32       |                       |
| state    | N, F * M  | as time     | per tensor, variable  |
| y        | N, F/rank | int8        | per tensor            |

Options: rank; fused_activation_function is ignored. A bias is required: Prepare reads its scale, which must be that of
state times time within 1e-5.
tflite-micro up to August 2026 evaluates the multipliers in float32, and so would LiteRT.
Source: tflite-micro (August and October 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference,
EvalInt16SvdfReference.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.svdf import reference
from tflq.engine.kernels.validity import cmsis_nn, micro, spec
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError


def prepare_int8_state(
    node: Node, arithmetic: Arithmetic, real: type[np.floating[Any]] = np.float64, is_right: bool = False
) -> Prepared:
    """Prepare SVDF with an int8 state, which has a zero point; the int16 state has none.

    If `is_right`, the state saturates with its zero point, not before it is added.
    """
    check_bias(node)
    zero = node.input(reference.STATE).zero_point
    return reference.prepare_integer(node, arithmetic, np.int8, zero, real, 0 if is_right else zero)


def prepare_cmsis_int8_state(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare SVDF with an int8 state as CMSIS-NN: it saturates to 16 bits, then wraps; its zero point is ignored.

    Source: tflite-micro cmsis_nn/svdf.cc EvalIntegerSVDF, which gives bounds of int16; CMSIS-NN arm_svdf_s8.c.
    """
    check_bias(node)
    return reference.prepare_integer(node, arithmetic, np.int16, real=np.float64)


def prepare_int16_state(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare SVDF with an int16 state: multipliers in float64."""
    check_bias(node)
    return reference.prepare_integer(node, arithmetic, real=np.float64)


def check_bias(node: Node) -> None:
    """Refuse a bias of another scale. Without one, the source reads the scale of no tensor.

    Source: svdf_common.cc PrepareSvdf; product in float32, difference in float64.
    """
    bias, time, state = node.optional(reference.BIAS), node.input(reference.TIME), node.input(reference.STATE)
    if bias is None:
        raise UndefinedResultError(node.op, "Prepare reads the scale of a bias that is not there")
    product = float(np.float32(state.scale) * np.float32(time.scale))
    if not abs(float(bias.scale) - product) < 1e-5:
        node.reject("scale of the bias", bias, expected=f"{product:.9g} within 1e-5", got=float(bias.scale))


#: Sums of floats.
_FLOATS = close("sums in the order of loops, which is not reproduced")

KERNELS = (
    *valid(
        micro(),
        replace(reference.ROWS[0], exactness=_FLOATS),
        Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_int8_state, (1, 4)),
        Kernel("SVDF", "int8 int8 int16 int32? int16 -> int8", prepare_int16_state, (1, 4)),
    ),
    *valid(cmsis_nn(), Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", prepare_cmsis_int8_state, (1, 4))),
    *valid(
        spec(),
        Kernel(
            "SVDF",
            "int8 int8 int8 int32? int8 -> int8",
            partial(prepare_int8_state, real=np.float32, is_right=True),
            (1, 4),
        ),
    ),
)
