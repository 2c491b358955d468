"""CAST, FAKE_QUANT, BUCKETIZE, DENSIFY: elements of another type or form.

CAST: y = x in another type.

| operand | shape | types                                                                                    |
|---------|-------|------------------------------------------------------------------------------------------|
| x       | any   | int8, uint8, int16, uint16, int32, uint32, int64, bool, float16, bfloat16, float32,      |
|         |       | float64, complex64; int4, int2, uint4 to float32                                         |
| y       | as x  | the same; int4, int2, uint4 from float32                                                 |

Quantization takes no part. Integers wrap; reals are cut towards zero and saturate, NaN gives the largest integer.
Narrow floats are converted from float32, rounded half to even. Complex numbers lose their imaginary part.
Source: LiteRT 2.3, cast.cc CastValue, copyCast, castFloatToInt4; quantization_util.h SafeCast.

FAKE_QUANT: reals held to the values that a quantized tensor could have.

| operand | shape | types   | quantization |
|---------|-------|---------|--------------|
| x       | any   | float32 | not looked at |
| y       | as x  | float32 | not looked at |

Options: min, max, num_bits; narrow_range is refused. The range is moved so that 0 is one of the values.
Source: LiteRT 2.3, fake_quant.cc; reference_ops.h FakeQuant; quantization_util.cc FakeQuantizeArray.

BUCKETIZE: how many boundaries are not above x.

| operand | shape | types                          |
|---------|-------|--------------------------------|
| x       | any   | float32, float64, int32, int64 |
| y       | as x  | int32                          |

Options: boundaries (float32, sorted).
Source: LiteRT 2.3, bucketize.cc.

DENSIFY: a constant that is stored sparsely, as a dense tensor.

| operand | shape | types                  | quantization |
|---------|-------|------------------------|--------------|
| x       | any   | float32, float16, int8 | passed by    |
| y       | as x  | as x                   |              |

Source: LiteRT 2.3, densify.cc Prepare, Eval; reference/densify.h Densify.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.unary import from_bfloat16, to_bfloat16
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, filling
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.multiplier import nudge_quantization_range
from tflq.engine.numerics.rounding import nearest_half_away
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Limits of the types that are carried in wider ones.
NARROW = {TensorType.INT4: (-8, 7), TensorType.INT2: (-2, 1), TensorType.UINT4: (0, 15)}


@dataclass(frozen=True, slots=True, eq=False)
class CastLimits:
    """The type of an array of integers, and the smallest and largest that it may hold."""

    dtype: np.dtype[Any]
    low: int
    high: int

    @classmethod
    def of(cls, target: TensorType) -> CastLimits:
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
        return Prepared((x.shape,), CastLimits.of(y.type), eval_integers)
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
    return saturating_integer(value, CastLimits.of(data.target)) if is_cut else value.astype(dtype)


@filling(lambda data, x: (x.shape, data.dtype), once=lambda data, x: saturating_integer(x, data))
def eval_integers(data: CastLimits, out: Array, x: Array) -> Call:
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


def saturating_integer(x: Array, limits: CastLimits) -> Array:
    """Return floats cut towards zero, held inside the limits; NaN gives the largest value."""
    low, high, dtype = limits.low, limits.high, limits.dtype
    inside = (x >= x.dtype.type(low)) & (x < x.dtype.type(float(high + 1)))
    cut = np.where(inside, x, 0).astype(dtype)
    return np.where(inside, cut, np.where(x < 0, dtype.type(low), dtype.type(high)))


_TYPES = "int8|uint8|int16|uint16|int32|uint32|int64|bool|float16|bfloat16|float32|float64|complex64"
_CAST = (
    Kernel("CAST", f"{_TYPES} -> {_TYPES}", prepare, (1, 9)),
    Kernel("CAST", "int4|int2|uint4 -> float32", prepare, (1, 9)),
    Kernel("CAST", "float32 -> int4|int2|uint4", prepare, (1, 9)),
)


_LARGEST_BITS = 31


@dataclass(frozen=True, slots=True, eq=False)
class FakeQuantData:
    """Constants, float32."""

    clamp: NumberClamp
    scale: np.float32
    inverse: np.float32


def prepare_fake_quant(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute all constants in float32."""
    bits = int(node.options["num_bits"])
    node.check(not node.options["narrow_range"], "narrow_range is not supported")
    node.check(0 < bits <= _LARGEST_BITS, "num_bits", expected=f"1 to {_LARGEST_BITS}", got=bits)
    low, high = np.float32(node.options["min"]), np.float32(node.options["max"])
    if not low < high:
        raise UndefinedResultError(node.op, f"a range from {low} to {high}")
    low, high, scale = nudge_quantization_range(low, high, 0, 2**bits - 1)
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / scale
    return Prepared((node.input(0).shape,), FakeQuantData(NumberClamp(low, high), scale, inverse), evaluate_fake_quant)


def evaluate_fake_quant(data: FakeQuantData, x: Array) -> Array:
    """Source: FakeQuantizeArray. Rounding: half away from zero; every step in float32. NaN gives the low end."""
    low, high = data.clamp
    clamped = np.where(low < x, x, low)
    clamped = np.where(clamped < high, clamped, high)
    return np.asarray(nearest_half_away((clamped - low) * data.inverse) * data.scale + low)


_FAKE_QUANT = (Kernel("FAKE_QUANT", "float32 -> float32", prepare_fake_quant, (1, 2)),)


def prepare_bucketize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse boundaries that fall."""
    option = node.options["boundaries"]
    boundaries = np.asarray(() if option is None or isinstance(option, int) else option, np.float32)
    if np.isnan(boundaries).any():
        raise UndefinedResultError(node.op, "a boundary is NaN")
    node.check(bool((boundaries[1:] >= boundaries[:-1]).all()), "boundaries", expected="sorted", got=boundaries)
    return Prepared((node.input(0).shape,), boundaries, evaluate_bucketize)


def evaluate_bucketize(boundaries: Array, x: Array) -> Array:
    """Source: Bucketize. Rounding: integers are compared as float32. A NaN is above all boundaries."""
    values = x if x.dtype.kind == "f" else x.astype(np.float32)
    return np.searchsorted(boundaries.astype(values.dtype), values, side="right").astype(np.int32)


_BUCKETIZE = (Kernel("BUCKETIZE", "float32|float64|int32|int64 -> int32", prepare_bucketize, (1, 1)),)


def prepare_densify(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the constant's value, which is dense already."""
    return Prepared((node.input(0).shape,), None, evaluate_densify)


def evaluate_densify(data: None, x: Array) -> Array:
    """Source: Densify. No rounding."""
    return x


_DENSIFY = (
    Kernel("DENSIFY", "float32 -> float32", prepare_densify, (1, 1), sparse=(0,)),
    Kernel("DENSIFY", "float16 -> float16", prepare_densify, (1, 1), sparse=(0,)),
    Kernel("DENSIFY", "int8 -> int8", prepare_densify, (1, 1), sparse=(0,)),
)

#: The rows of all operators above.
KERNELS = (*_CAST, *_FAKE_QUANT, *_BUCKETIZE, *_DENSIFY)
