"""CAST: y = x in another type.

| operand | shape | types                                                                                    |
|---------|-------|------------------------------------------------------------------------------------------|
| x       | any   | int8, uint8, int16, uint16, int32, uint32, int64, bool, float16, bfloat16, float32,      |
|         |       | float64, complex64; int4, int2, uint4 to float32                                         |
| y       | as x  | the same; int4, int2, uint4 from float32                                                 |

Quantization takes no part. Integers wrap; reals are cut towards zero and saturate, NaN gives the largest integer.
Narrow floats are converted from float32, rounded half to even. Complex numbers lose their imaginary part.
Source: LiteRT 2.3, cast.cc CastValue, copyCast, castFloatToInt4; quantization_util.h SafeCast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.narrow_floats import from_bfloat16, to_bfloat16
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Limits of the types that are carried in wider ones.
NARROW = {TensorType.INT4: (-8, 7), TensorType.INT2: (-2, 1), TensorType.UINT4: (0, 15)}


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The type of an array of integers, and the smallest and largest that it may hold."""

    dtype: np.dtype[Any]
    low: int
    high: int

    @classmethod
    def of(cls, target: TensorType) -> Limits:
        """Return those of an integer type."""
        return cls(CARRIER[target], *NARROW.get(target, type_range(CARRIER[target])))


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """From which type to which."""

    source: TensorType
    target: TensorType


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check only the types."""
    x, y = node.input(0), node.outputs[0]
    target = CARRIER[y.type]
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT64) and target.kind in "iu" and y.type != TensorType.BFLOAT16:
        return Prepared((x.shape,), Limits.of(y.type), eval_integers)
    return Prepared((x.shape,), OpData(x.type, y.type), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Source: copyToTensor."""
    if data.source == data.target:
        return x
    value = _plain(data.source, x)
    if data.target in (TensorType.FLOAT16, TensorType.BFLOAT16):
        single = value.astype(np.float32)
        return to_bfloat16(single) if data.target == TensorType.BFLOAT16 else single.astype(np.float16)
    dtype = CARRIER[data.target]
    is_cut = value.dtype.kind == "f" and dtype.kind in "iu"
    return saturating_integer(value, Limits.of(data.target)) if is_cut else value.astype(dtype)


@filling(lambda data, x: (x.shape, data.dtype), once=lambda data, x: saturating_integer(x, data))
def eval_integers(data: Limits, out: Array, x: Array) -> Call:
    """Source: copyToTensor, of floats to integers; castFloatToInt4 and its like, to narrow ones."""
    real, whole = x.dtype.type, data.dtype.type
    limits = real(data.low), real(float(data.high + 1)), whole(data.low), whole(data.high)
    return _saturate.bound(np.asarray(x, order="C").reshape(-1), *limits, out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _saturate(x: Array, first: Real, end: Real, low: Int, high: Int, out: Array) -> None:
    """Cut numbers from `first` to below `end` towards zero; others give `low` below 0, else `high`, NaN too.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        if first <= x[i] < end:
            out[i] = x[i]
        else:
            out[i] = low if x[i] < 0 else high


def _plain(source: TensorType, x: Array) -> Array:
    """Return `x` in a type that NumPy computes with: 16-bit floats as float32, complex without its imaginary part."""
    if source == TensorType.BFLOAT16:
        return from_bfloat16(x)
    if source == TensorType.FLOAT16:
        return x.astype(np.float32)
    return x.real if source == TensorType.COMPLEX64 else x


def saturating_integer(x: Array, limits: Limits) -> Array:
    """Return floats cut towards zero, held inside the limits; NaN gives the largest value."""
    low, high, dtype = limits.low, limits.high, limits.dtype
    inside = (x >= x.dtype.type(low)) & (x < x.dtype.type(float(high + 1)))
    cut = np.where(inside, x, 0).astype(dtype)
    return np.where(inside, cut, np.where(x < 0, dtype.type(low), dtype.type(high)))


_TYPES = "int8|uint8|int16|uint16|int32|uint32|int64|bool|float16|bfloat16|float32|float64|complex64"
KERNELS = (
    Kernel("CAST", f"{_TYPES} -> {_TYPES}", prepare, (1, 9)),
    Kernel("CAST", "int4|int2|uint4 -> float32", prepare, (1, 9)),
    Kernel("CAST", "float32 -> int4|int2|uint4", prepare, (1, 9)),
)
