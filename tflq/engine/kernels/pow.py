"""POW: y = a ** b.

| operand | shape             | types          |
|---------|-------------------|----------------|
| a, b    | any, broadcasting | float32, int32 |
| y       | broadcast         | as a           |

A single exponent of another shape than the base that is (to 1e-5) a whole number >= 1 multiplies; else the host's libm.
Negative int32 exponents raise when run, as the source's Eval returns an error.
Source: LiteRT 2.3, pow.cc CheckValue, PowImpl; optimized_ops::BroadcastPow4D, IntegerExponentPow; reference_ops::Pow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.reduction import highest, lowest
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import powf
from tflq.engine.numerics.rounding import floats_to_int32, half_away
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants that depend on the shapes."""

    single: bool  # whether one exponent of another shape serves all
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shapes alone."""
    a, b, _ = both(node)
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), OpData(a.shape != b.shape and prod(b.shape) == 1, shape), evaluate)


def evaluate(data: OpData, a: Array, b: Array) -> Array:
    """Source: PowImpl. Rounding: every product, or libm's. Overflow: int32 products wrap, else as x86 converts."""
    if a.dtype == np.int32 and (b < 0).any():
        raise UndefinedResultError("Pow", "negative exponent of an int32")
    if data.single and (whole := _whole_exponent(b.reshape(-1)[0])) >= 1:
        return _multiply(a, whole).reshape(data.shape)
    if a.dtype == np.float32:
        return powf(a, b)
    return floats_to_int32(np.power(a.astype(np.float64), b.astype(np.float64)))


def _whole_exponent(exponent: np.generic) -> int:
    real = float(exponent)
    if not abs(real) < 2**31:
        return 0
    whole = half_away(real)
    return whole if abs(np.float32(real) - np.float32(whole)) < np.float32(1e-5) else 0


def _multiply(a: Array, exponent: int) -> Array:
    """Square and multiply from the highest bit, every product held inside the type's finite range."""
    if exponent == 1:
        return np.array(a)
    low, high = lowest(a.dtype), highest(a.dtype)
    half = _multiply(a, exponent // 2)
    square = clamp_in_place(np.asarray(half * half), low, high)
    return clamp_in_place(np.asarray(square * a), low, high) if exponent % 2 else square


KERNELS = (
    Kernel("POW", "float32 float32 -> float32", prepare, (1, 1), exactness=SAME_LIBM),
    Kernel("POW", "int32 int32 -> int32", prepare, (1, 1)),
)
