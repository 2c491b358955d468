"""LOGISTIC, TANH: y = 1 / (1 + exp(-x)), y = tanh(x).

| operand | shape | types                                          | quantization                            |
|---------|-------|------------------------------------------------|-----------------------------------------|
| x       | any   | float32, float16, bfloat16, uint8, int8, int16 | per tensor; int16: zero point 0         |
| y       | as x  | as x                                           | LOGISTIC: scale 1/256; TANH: per tensor |
|         |       |                                                | int16: scale 2**-15, zero point 0       |

Source: LiteRT 2.3, activations.cc SigmoidPrepare, SigmoidEval, TanhPrepare, TanhEval; reference/logistic.h Logistic;
reference_integer_ops::Logistic, Tanh (int16).
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.narrow_floats import narrow_floats
from tflq.engine.kernels.families.unary import check_zero_points, prepare_tabulated, same_type
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import Composed, expf, tanhf
from tflq.engine.numerics.scaling import check_log2
from tflq.engine.numerics.sigmoid_int16 import logistic_int16_into, sigmoid_multiplier, tanh_int16_into
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Beyond these the float form takes 1, and exp(x).
UPPER, LOWER = 16.619047164916992188, -9.0


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) in float32."""
    return np.asarray(np.float32(1) / (np.float32(1) + expf(-x)))


def prepare_logistic_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    _, y = same_type(node)
    node.check(bool(y.scale == np.float32(1 / 256)), "scale", y, expected="1/256", got=y.scale)
    return prepare_tabulated(node, sigmoid)


def prepare_logistic_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the published table of the sigmoid."""
    x, y = same_type(node)
    check_zero_points(node)
    node.check(bool(y.scale == np.float32(1 / 32768)), "scale", y, expected="1/32768", got=y.scale)
    return Prepared((x.shape,), _multiplier(node, x, 0), eval_logistic_int16)


def _multiplier(node: Node, x: Operand, largest_pot_shift: int) -> tuple[int, int]:
    """Return multiplier and shift of 16-bit inputs; refuse a multiplier that int32 does not hold."""
    multiplier, shift = sigmoid_multiplier(x.scale, largest_pot_shift)
    if multiplier >= 2**31:
        raise UndefinedResultError(node.op, f"an input scale of {x.scale:g}: the multiplier is beyond int32")
    return multiplier, shift


@filling(lambda _multiplier, x: (x.shape, np.int16))
def eval_logistic_int16(multiplier: tuple[int, int], out: Array, x: Array) -> Call:
    """Source: reference_integer_ops::Logistic. Rounding: as in logistic_int16."""
    return logistic_int16_into.bound(np.asarray(x, order="C").reshape(-1), *multiplier, out.reshape(-1))


def _logistic(x: Array) -> Array:
    low = x < LOWER
    grown = expf(np.where(low, x, -x))
    return np.where(x > UPPER, np.float32(1), np.where(low, grown, np.float32(1) / (np.float32(1) + grown)))


@in_pieces(16, x="r", out="r")
@compiled
def _logistic_into(x: Array, out: Array) -> None:
    """Fill `out` with the logistic function of `x`. The caller guarantees: `x` and `out` have the same size."""
    for i in range(x.size):
        value = x[i]
        if value > np.float32(UPPER):
            out[i] = np.float32(1)
        elif value < np.float32(LOWER):
            out[i] = math.exp(value)
        else:
            out[i] = np.float32(1) / (np.float32(1) + math.exp(-value))


#: Source: Logistic (float).
logistic = Composed(_logistic, _logistic_into, expf)

LOGISTIC = (
    *narrow_floats("LOGISTIC", logistic, (1, 3)),
    *(Kernel("LOGISTIC", f"{t} -> {t}", prepare_logistic_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("LOGISTIC", "int16 -> int16", prepare_logistic_int16, (1, 3)),
)


def prepare_tanh_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, tanhf)


def prepare_tanh_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the published table of the sigmoid."""
    x, y = same_type(node)
    check_zero_points(node)
    node.check(bool(y.scale > 0) and check_log2(y.scale) == (-15, True), "scale", y, expected="2**-15", got=y.scale)
    return Prepared((x.shape,), _multiplier(node, x, 1), eval_tanh_int16)


@filling(lambda _multiplier, x: (x.shape, np.int16))
def eval_tanh_int16(multiplier: tuple[int, int], out: Array, x: Array) -> Call:
    """Source: reference_integer_ops::Tanh. Rounding: as in tanh_int16."""
    return tanh_int16_into.bound(np.asarray(x, order="C").reshape(-1), *multiplier, out.reshape(-1))


TANH = (
    *narrow_floats("TANH", tanhf, (1, 3)),
    *(Kernel("TANH", f"{t} -> {t}", prepare_tanh_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("TANH", "int16 -> int16", prepare_tanh_int16, (1, 3)),
)

KERNELS = (*LOGISTIC, *TANH)
