"""ADD, SUB in integers without a common scale: each input by a multiplier of its own to the output's scale.

Either both products have one shift and their sum is rounded once, or each input is requantized by itself (by the
arithmetic's own stage, which a point of the grammar of requantizers can change) and the codes are added.
Sources of fields: Arm Ethos-U (scaled elementwise addition), accelerators whose adder has a single output shifter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import OF_HARDWARE
from tflq.engine.numerics.requantizer import MANTISSAS, SHIFTS, SHORTENED, Requantizer
from tflq.engine.numerics.stages import OutputStage
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("ADD", "SUB")
SHARED, EACH = FORMS = ("one shift for both products", "each input requantized")
#: The values of each field. `mantissa`, `shortened` and `last` belong to the first form.
FIELDS: Mapping[str, tuple[object, ...]] = {
    "form": FORMS,
    "mantissa": (*MANTISSAS[:-1], 30, 22, 20, 14, 13, 10),
    "shortened": SHORTENED[:2],
    "last": tuple(OF_HARDWARE),
}


@dataclass(frozen=True, slots=True)
class IntegerSum:
    """One point of the grammar of integer sums. Fields are spelled as files of profiles spell them."""

    form: str = SHARED
    mantissa: int = 15
    shortened: str = SHORTENED[0]
    last: str = "half up"


#: The reader of what a file states.
integer_sum_of = reader(IntegerSum, FIELDS, "an integer sum")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: zero points (LSB), multipliers and their shift, or the stage of each input."""

    zeros: tuple[int, int, int]
    sign: int
    factors: tuple[int, int, int]  # both multipliers and the shift to the right
    stages: tuple[OutputStage, ...]
    clamp: Clamp
    dtype: np.dtype[Any]
    point: IntegerSum


def sum_in_integers(row: Kernel, point: IntegerSum) -> Kernel:
    """Return the row of ADD or SUB whose inputs are brought to the output's scale by themselves."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, y = both(node)
        for operand in (a, b, y):
            node.check(operand.is_quantized and operand.type in CARRIER, "has no scale to add with", operand)
        reals = np.array([np.float64(o.scale) / np.float64(y.scale) for o in (a, b)])
        node.check(bool(np.all(np.isfinite(reals) & (reals > 0))), "has no positive scales", y)
        dtype = CARRIER[y.type]
        width = Requantizer(mantissa=point.mantissa, shortened=point.shortened, shift=SHIFTS[1])
        mantissas, shifts = width.factors(reals, None)
        factors = int(mantissas[0]), int(mantissas[1]), point.mantissa - int(shifts[0])
        stages = tuple(arithmetic.requantize(real) for real in reals) if point.form == EACH else ()
        zeros = int(a.zero_point), int(b.zero_point), int(y.zero_point)
        sign, clamp = -1 if node.op == "SUB" else 1, code_range(node, y, dtype)
        data = OpData(zeros, sign, factors, stages, clamp, dtype, point)
        return Prepared((broadcast_shape(node, a, b),), data, eval_integer_sum)

    return replace(row, prepare=prepare, takes=None)


def eval_integer_sum(data: OpData, a: Array, b: Array) -> Array:
    """Bring both inputs to the output's scale and add. Rounding: by the point, or by each input's stage."""
    first, second = (np.asarray(x, np.int64) - zero for x, zero in zip((a, b), data.zeros, strict=False))
    second = data.sign * second if data.point.form == SHARED else second
    if data.point.form == SHARED:
        one, other, shift = data.factors
        total = (first * one + second * other) << np.int64(max(-shift, 0))
        total = OF_HARDWARE[data.point.last](total, np.full((1,), min(max(shift, 0), 62), np.int64))
    else:
        scaled = (
            s(x.reshape(1, -1)).astype(np.int64).reshape(x.shape)
            for s, x in zip(data.stages, (first, second), strict=True)
        )
        left, right = scaled
        total = left + data.sign * right
    return np.asarray(np.clip(total + data.zeros[2], *data.clamp).astype(data.dtype))
