"""Comparisons, logic, MAXIMUM, MINIMUM, SELECT, SQUARED_DIFFERENCE, StableHLO's arithmetic.

SQUARED_DIFFERENCE: y = (a - b) ** 2.

| operand | shape             | types                | quantization                             |
|---------|-------------------|----------------------|------------------------------------------|
| a, b    | any, broadcasting | float32, int32, int8 | per tensor, zero points within the type  |
| y       | broadcast         | as a                 | per tensor, zero point within the type   |

Source: LiteRT 2.3, squared_difference.cc Prepare, SquaredDifference.

SQUARED_DIFFERENCE of TensorFlow Lite Micro, which takes 16 bits too.

| operand | shape             | types | quantization             |
|---------|-------------------|-------|--------------------------|
| a, b    | any, broadcasting | int16 | per tensor, zero point 0 |
| y       | broadcast         | int16 | per tensor, zero point 0 |

Source: tflite-micro (October 2026), squared_difference.cc SquaredDifferencePrepare, PrepareQuantized.

SQUARED_DIFFERENCE of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack.py.

Element-wise comparisons: what EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL share.

8-bit codes (int16 too, for equality) are compared as reals: a rounding multiplier brings both to the scale 1/256. Other
types are compared as they are.
Source: LiteRT 2.3, comparisons.cc ComparisonPrepareCommon, ComparisonQuantized; reference/comparisons.h.

EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL: y = a == b, a != b, a > b, a >= b, a < b, a <= b.

| operand | shape             | types                                            | quantization           |
|---------|-------------------|--------------------------------------------------|------------------------|
| a, b    | any, broadcasting | uint8, int8                                      | per tensor, may differ |
|         |                   | float32, float16, int32, int64                   | none                   |
|         |                   | EQUAL, NOT_EQUAL: int16                          | per tensor, may differ |
|         |                   | the others: int16                                | plain numbers          |
|         |                   | EQUAL, NOT_EQUAL: bool, string                   | none                   |
| y       | broadcast         | bool                                             |                        |

Up to LiteRT 2.0, EQUAL compares 16-bit codes as they are, regardless of their scales.
Source: LiteRT 2.3 and TensorFlow 2.14, comparisons.cc EqualEval and its kin; reference/comparisons.h.

StableHLO's operators of two inputs of one shape and type: what their kernel files share.

Source: LiteRT 2.3, stablehlo_elementwise.cc ElementwisePrepare; stablehlo_elementwise.h ElementwiseEval.

Operators on the bits of two integers: what their kernel files share.

Logic and bits: LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT, BITWISE_XOR, RIGHT_SHIFT, STABLEHLO_AND, STABLEHLO_SHIFT_LEFT.

| operator             | operands; y as the first         | types                                             |
|----------------------|----------------------------------|---------------------------------------------------|
| LOGICAL_AND, _OR     | a, b: any, broadcasting          | bool                                              |
| LOGICAL_NOT          | x: any                           | bool                                              |
| BITWISE_XOR          | a, b: any, broadcasting          | int8, uint8, int16, uint16, int32, uint32         |
| RIGHT_SHIFT          | a, b: any, broadcasting          | as BITWISE_XOR                                    |
| STABLEHLO_AND        | a, b: equal                      | as BITWISE_XOR, and int64, uint64, bool           |
| STABLEHLO_SHIFT_LEFT | a; b with at least as many elements | int8, int16, int32                             |

RIGHT_SHIFT: a / 2**b, rounded down; shifts are clipped to 0 and the type's width - 1.
STABLEHLO_SHIFT_LEFT: a times 2**b, wrapping; shifts by less than 0 or more than 31 are undefined.
BUILTIN_REF has no STABLEHLO_ operator: their kernels are those of the full resolver.
Source: LiteRT 2.3, logical.cc Prepare, LogicalImpl; elementwise.cc LogicalNotEval; bitwise_xor.cc; right_shift.cc
RightShift; stablehlo_elementwise.h ApplyComputation (kAnd); stablehlo_shift_left.cc.

SELECT, SELECT_V2: of two tensors, element by element, the one that a condition picks.

| operand   | shape                          | types                   | quantization |
|-----------|--------------------------------|-------------------------|--------------|
| condition | as x; SELECT: scalar or vector | bool                    |              |
| x         | any                            | every 8 to 64 bit type  | passed by    |
| y         | as x                           | as x                    | passed by    |
| z         | as x                           | as x                    | passed by    |

SELECT's vector picks whole rows. SELECT_V2 broadcasts all three, up to 8 dimensions. Where everything has one element,
the output keeps the shape that the file gives it.
Source: LiteRT 2.3, select.cc SelectPrepare; reference/select.h.

MAXIMUM, MINIMUM: y = a > b ? a : b, y = a < b ? a : b.

| operand | shape             | types                                              | quantization |
|---------|-------------------|----------------------------------------------------|--------------|
| a, b    | any, broadcasting | float32, float16, uint8, int8, int16, int32, int64 | ignored      |
| y       | broadcast         | as a                                               | ignored      |

Codes are compared as they are, regardless of their scales. AArch64 up to 2.14 has fmaxnm and fminnm for float32.
XNNPACK on x86-64 reads subnormal floats as zeros. An operand that is repeated along the innermost dimension is the
second one of the comparison. A constant of one element is a limit: the first operand, positive if it is zero, and
without effect if it is infinite.
Source: LiteRT 2.3 and TensorFlow 2.14, maximum_minimum.cc Prepare, MaximumOp, MinimumOp. LiteRT 2.3
xnnpack_delegate.cc VisitBinaryNode; XNNPACK's f32-vbinary, subgraph.c optimize_common_subgraphs_min_max_to_clamp.

STABLEHLO_ADD, STABLEHLO_MULTIPLY, STABLEHLO_MAXIMUM, STABLEHLO_MINIMUM, element by element.

| operand | shape | types                                                     |
|---------|-------|-----------------------------------------------------------|
| a, b    | equal | float16, float32, float64, integers of 8 to 64 bits, bool |
| y       | as a  | as a                                                      |

Integers wrap. The sum of two bool is true if one is, the product if both are. MAXIMUM and MINIMUM give a if the
operands are equal or one is NaN.
Source: LiteRT 2.3, stablehlo_elementwise.h ApplyComputation (kAdd, kMul, kMax, kMin).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_same_type, require_zero_point_zero
from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.binary import Function, RowLoops, both, prepare_plain, row_by_row
from tflq.engine.kernels.families.movement import SIZED, Copying
from tflq.engine.kernels.families.scaled_sum import scale_codes, smaller_than_one
from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.families.xnnpack import Operation, computing, takes
from tflq.engine.kernels.geometry.axes import broadcast_shape
from tflq.engine.kernels.geometry.windows import broadcast_steps, flat_places
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepare, Prepared, Shape, filling, undefined, valid
from tflq.engine.kernels.validity import micro, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.estimates import subnormals_as_zeros
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

LEFT_SHIFT = 7


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized form."""

    first: Array  # by code of the first input (as unsigned): int32 on the common scale
    second: Array
    pipeline: OutputPipeline  # common scale squared -> codes


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use twice the larger input scale (float32), 2**7 times finer, as the common scale."""
    a, b, y = both(node)
    limits = type_range(np.int8)
    for operand in (a, b, y):
        node.check(limits.low <= operand.zero_point <= limits.high, "zero point", operand, got=operand.zero_point)
    twice = np.float64(np.float32(2) * max(a.scale, b.scale))
    output = smaller_than_one(twice * twice / np.float64(np.float32(1 << 2 * LEFT_SHIFT) * y.scale))
    data = OpData(
        first=scale_codes(a, arithmetic, np.float64(a.scale) / twice, LEFT_SHIFT),
        second=scale_codes(b, arithmetic, np.float64(b.scale) / twice, LEFT_SHIFT),
        pipeline=OutputPipeline(arithmetic.requantize(output), y.zero_point, limits, np.dtype(np.int8)),
    )
    return Prepared((broadcast_shape(node, a, b),), data, eval_quantized)


def eval_quantized(data: OpData, a: Array, b: Array) -> Array:
    """Source: SquaredDifference (int8). Rounding: each input's, then the square's. Overflow: none (below 2**30)."""
    difference = data.first[a.view(np.uint8)] - data.second[b.view(np.uint8)]
    return data.pipeline(difference * difference)


def squared_difference(a: Array, b: Array) -> Array:
    """Return (a - b) ** 2 in the operands' type: float32 rounds twice, int32 wraps."""
    difference = np.asarray(a - b)
    return np.asarray(difference * difference)


_REFERENCE = (
    *(
        Kernel("SQUARED_DIFFERENCE", f"{t} {t} -> {t}", prepare_plain(squared_difference), (1, 2))
        for t in ("float32", "int32")
    ),
    Kernel("SQUARED_DIFFERENCE", "int8 int8 -> int8", prepare_quantized, (1, 2)),
)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use twice the larger input scale as the common scale, no finer: codes have 16 bits already."""
    a, b, y = both(node)
    require_zero_point_zero(node, a, b, y)
    twice = np.float64(np.float32(2) * max(a.scale, b.scale))
    output = smaller_than_one(twice * twice / np.float64(y.scale))
    dtype = np.dtype(np.int16)
    data = OpData(
        first=scale_codes(a, arithmetic, np.float64(a.scale) / twice, 0),
        second=scale_codes(b, arithmetic, np.float64(b.scale) / twice, 0),
        pipeline=OutputPipeline(arithmetic.requantize(output), ZeroPoint(0), type_range(dtype), dtype),
    )
    return Prepared((broadcast_shape(node, a, b),), data, eval_int16)


def eval_int16(data: OpData, a: Array, b: Array) -> Array:
    """Source: SquaredDifference (int16). Rounding: each input's, then the square's. Overflow: none (at most 2**30)."""
    difference = data.first[a.view(np.uint16)] - data.second[b.view(np.uint16)]
    return data.pipeline(difference * difference)


_MICRO = valid(micro(), Kernel("SQUARED_DIFFERENCE", "int16 int16 -> int16", prepare_int16, (1, 2)))


_XNNPACK = valid(
    xnnpack("litert-2.1", cpu="x86-64"), computing("SQUARED_DIFFERENCE", _REFERENCE, Operation.SQUARED_DIFFERENCE)
)


COMPARISON_LEFT_SHIFT = 8


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonData:
    """Constants of the quantized forms."""

    compare: Function
    first: Array  # by code of the first input (as unsigned): int32, real * 256
    second: Array


def prepare_logical(function: Function) -> Prepare:
    """Return a prepare for `function`, which gives truth values."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        return Prepared((broadcast_shape(node, a, b),), function, eval_plain)

    return prepare


def kernels(op: str, compare: Function, plain: tuple[str, ...], versions: tuple[int, int]) -> tuple[Kernel, ...]:
    """Return the kernels of a comparison: `plain` are types compared as they are, with float32, int32 and int64."""

    prepare_plain = prepare_logical(compare)

    def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        shape = broadcast_shape(node, a, b)
        first, second = (scale_codes(o, arithmetic, np.float64(o.scale), COMPARISON_LEFT_SHIFT) for o in (a, b))
        return Prepared((shape,), ComparisonData(compare, first, second), eval_quantized_comparison)

    def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
        quantized = node.input(0).is_quantized
        if op == "NOT_EQUAL" and not quantized:
            node.refuse("int16 that is not quantized leaves the output unwritten", node.input(0))
        return (prepare_quantized if quantized else prepare_plain)(node, arithmetic)

    same = ("float32", "float16", "int32", "int64", *plain)
    rows = [Kernel(op, f"{t} {t} -> bool", prepare_plain, versions) for t in same]
    rows += [Kernel(op, f"{t} {t} -> bool", prepare_quantized, versions) for t in ("uint8", "int8")]
    if "int16" not in plain:
        rows.append(Kernel(op, "int16 int16 -> bool", prepare_int16, versions))
    return tuple(rows)


@filling(
    lambda _, a, b: (np.broadcast_shapes(a.shape, b.shape), np.bool_),
    once=lambda compare, a, b: np.asarray(compare(a, b), np.bool_),
)
def eval_plain(compare: Function, out: Array, a: Array, b: Array) -> Call:
    """Compare without rounding. NaN is unequal to everything and never less."""
    if a.dtype not in _COMPARED or not out.size:
        return partial(compare, a, b, out=out)
    return row_by_row(_LOOPS, _NUMBERS[compare], _SWAPPED, NumberClamp(np.float32(0), np.float32(0)), out, a, b)


#: The types that `_compared_row` compares; its functions by number, and their numbers if the operands change places.
_COMPARED = frozenset(map(np.dtype, (np.float32, np.int32, np.int64, np.bool_)))
_NUMBERS: Mapping[Function, int] = {
    np.equal: 0,
    np.not_equal: 1,
    np.less: 2,
    np.less_equal: 3,
    np.greater: 4,
    np.greater_equal: 5,
    np.logical_and: 6,
    np.logical_or: 7,
}
_SWAPPED: Mapping[int, int] = {0: 0, 1: 1, 2: 4, 3: 5, 4: 2, 5: 3, 6: 6, 7: 7}


@compiled
def _compared_row(a: Array, b: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Compare one row. The caller guarantees: `a`, `b` and `out` have the same size."""
    for i in range(out.size):
        if function == 0:
            out[i] = a[i] == b[i]
        elif function == 1:
            out[i] = a[i] != b[i]
        elif function == 2:
            out[i] = a[i] < b[i]
        elif function == 3:
            out[i] = a[i] <= b[i]
        elif function == 4:
            out[i] = a[i] > b[i]
        elif function == 5:
            out[i] = a[i] >= b[i]
        elif function == 6:
            out[i] = (a[i] != 0) & (b[i] != 0)
        else:
            out[i] = (a[i] != 0) | (b[i] != 0)


_LOOPS = RowLoops.of(_compared_row)


def eval_quantized_comparison(data: ComparisonData, a: Array, b: Array) -> Array:
    """Source: ComparisonWithScaling. Rounding: each input's, by the stage, when the tables were computed."""
    return np.asarray(data.compare(_look_up(data.first, a), _look_up(data.second, b)))


def _look_up(table: Array, x: Array) -> Array:
    codes = x.view(f"u{x.dtype.itemsize}")
    return np.asarray(table[codes])


UNDEFINED_INT16 = undefined("int16 codes, whose multipliers tflite-micro does not compute")
_COMPARISONS = (
    *valid(micro(), Kernel("GREATER", "int16 int16 -> bool", UNDEFINED_INT16, (1, 2))),
    *kernels("EQUAL", np.equal, ("bool", "string"), (1, 5)),
    *kernels("NOT_EQUAL", np.not_equal, ("bool", "string"), (1, 4)),
    *kernels("GREATER", np.greater, ("int16",), (1, 2)),
    *kernels("GREATER_EQUAL", np.greater_equal, ("int16",), (1, 3)),
    *kernels("LESS", np.less, ("int16",), (1, 3)),
    *kernels("LESS_EQUAL", np.less_equal, ("int16",), (1, 2)),
    *valid(
        tflite(until="litert-2.0"),
        *(row for row in kernels("EQUAL", np.equal, ("int16",), (1, 5)) if row.signature.reads(TensorType.INT16)),
    ),
)


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
NUMBERS = ("float16", "float32", "float64", *INTEGERS)


@dataclass(frozen=True, slots=True)
class Choice:
    """std::max or std::min: the second element where it is larger (smaller) than the first, else the first."""

    largest: bool

    def __call__(self, a: Array, b: Array) -> Array:
        """Return the chosen elements."""
        return np.where(a < b if self.largest else b < a, b, a)

    def into(self, a: Array, b: Array, out: Array) -> Call:
        """Return the call that fills `out`; all are 1-D and of one size and type."""
        if a.dtype.kind != "f":
            return partial(np.maximum if self.largest else np.minimum, a, b, out=out)
        first, second = (a, b) if self.largest else (b, a)
        if a.dtype == np.float16:
            return _choose_halves.bound(*(x.view(np.int16) for x in (first, second, a, b, out)))
        return _choose.bound(first, second, a, b, out)


@in_pieces(low="r", high="r", a="r", b="r", out="r")
@compiled
def _choose(low: Array, high: Array, a: Array, b: Array, out: Array) -> None:
    """Compute out = b where low < high, else a.

    Eval guarantees: all have the same size.
    """
    for i in range(out.size):
        first, second = a[i], b[i]
        out[i] = second if low[i] < high[i] else first


@in_pieces(4, low="r", high="r", a="r", b="r", out="r")
@compiled
def _choose_halves(low: Array, high: Array, a: Array, b: Array, out: Array) -> None:
    """Compute out = b where low < high, else a, of float16 given as int16.

    Eval guarantees: all have the same size.
    """
    for i in range(out.size):
        first, second = a[i], b[i]
        x, y = np.int32(low[i]), np.int32(high[i])
        size, other = np.int32(x & 0x7FFF), np.int32(y & 0x7FFF)
        left, right = np.int32(size if x >= 0 else -size), np.int32(other if y >= 0 else -other)
        out[i] = second if (max(size, other) <= 0x7C00) & (left < right) else first


def kernels_elementwise(
    op: str, function: Callable[[Array, Array], Array], types: tuple[str, ...]
) -> tuple[Kernel, ...]:
    """Return the kernels of `function` in the operands' own type."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b = node.input(0), node.input(1)
        node.check(a.shape == b.shape, "shape", b, expected=list(a.shape), got=list(b.shape))
        return Prepared((a.shape,), function, evaluate)

    return tuple(Kernel(op, f"{t} {t} -> {t}", prepare, (1, 1)) for t in types)


@filling(lambda function, a, b: (a.shape, a.dtype), once=lambda function, a, b: function(a, b))
def evaluate(function: Callable[[Array, Array], Array], out: Array, a: Array, b: Array) -> Call:
    """Rounding: one, of the type. Overflow: integers wrap."""
    if isinstance(function, np.ufunc):
        return partial(function, a, b, out)
    if isinstance(function, Choice):
        return function.into(a.reshape(-1), b.reshape(-1), out.reshape(-1))
    return lambda: np.copyto(out, function(a, b))


BITS_TYPES = "int8|uint8|int16|uint16|int32|uint32"


def prepare_bits(node: Node, evaluate: Callable[[None, Array, Array], Array]) -> Prepared:
    """Prepare without constants. Source: BroadcastBinaryFunction4DSlow, which takes more than four dimensions."""
    a, b = node.input(0), node.input(1)
    require_same_type(node, a, b, node.outputs[0])
    return Prepared((broadcast_shape(node, a, b),), None, evaluate)


def prepare_xor(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    return prepare_bits(node, eval_xor)


def eval_xor(_: None, a: Array, b: Array) -> Array:
    """Source: BitwiseXor."""
    return a ^ b


def prepare_right_shift(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    return prepare_bits(node, eval_right_shift)


def eval_right_shift(_: None, a: Array, b: Array) -> Array:
    """Source: RightShift. Rounding: down (arithmetic shift)."""
    shifted: Array = a >> np.clip(b, 0, 8 * a.dtype.itemsize - 1)
    return shifted


def prepare_shift_left(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shapes alone."""
    a, b = node.input(0), node.input(1)
    if prod(b.shape) < prod(a.shape):
        raise UndefinedResultError(node.op, "the source reads behind the end of a smaller b")
    return Prepared((a.shape,), None, eval_shift_left)


def eval_shift_left(_: None, a: Array, b: Array) -> Array:
    """Source: EvalImpl, in int32. Overflow: bits beyond the type are lost."""
    shifts = b.reshape(-1)[: a.size].astype(np.int32).reshape(a.shape)
    if ((shifts < 0) | (shifts > 31)).any():
        raise UndefinedResultError("STABLEHLO_SHIFT_LEFT", "a shift outside [0, 31]")
    return np.left_shift(a.astype(np.int32), shifts).astype(a.dtype)


_LOGIC = (
    Kernel("BITWISE_XOR", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare_xor, (1, 1)),
    Kernel("LOGICAL_AND", "bool bool -> bool", prepare_logical(np.logical_and), (1, 1)),
    Kernel("LOGICAL_NOT", "bool -> bool", prepare_function(np.logical_not), (1, 1)),
    Kernel("LOGICAL_OR", "bool bool -> bool", prepare_logical(np.logical_or), (1, 1)),
    Kernel("RIGHT_SHIFT", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare_right_shift, (1, 1)),
    *kernels_elementwise("STABLEHLO_AND", np.bitwise_and, INTEGERS),
    *tuple(
        Kernel("STABLEHLO_SHIFT_LEFT", f"{t} {t} -> {t}", prepare_shift_left, (1, 1))
        for t in ("int8", "int16", "int32")
    ),
)


MAX_RANK = 8


def prepare_select(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a condition that has x's shape, or picks rows of it."""
    condition, x, y = (node.input(position) for position in range(3))
    require_same_type(node, x, y, node.outputs[0])
    if one_element_each(node):
        return Prepared((node.outputs[0].shape,), node.outputs[0].shape, eval_single)
    node.check(x.shape == y.shape, "shape", y, expected=list(x.shape), got=list(y.shape))
    if condition.shape == x.shape:
        return Prepared((x.shape,), x.shape, eval_select)
    allowed = [x.shape, x.shape[:1], ()]
    node.check(condition.shape in allowed, "shape", condition, expected=f"one of {allowed}", got=condition.shape)
    picked = condition.shape + (1,) * (len(x.shape) - len(condition.shape))
    return Prepared((x.shape,), picked, eval_broadcast)


def prepare_select_v2(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Broadcast all three operands."""
    condition, x, y = (node.input(position) for position in range(3))
    require_same_type(node, x, y, node.outputs[0])
    if one_element_each(node):
        return Prepared((node.outputs[0].shape,), node.outputs[0].shape, eval_single)
    shapes = [o.shape for o in (condition, x, y)]
    shape = broadcast(shapes)
    if shape is None or len(shape) > MAX_RANK:
        node.refuse("shapes to broadcast", expected=f"compatible, up to {MAX_RANK} dimensions", got=shapes)
    is_equal = condition.shape == x.shape == y.shape
    return Prepared((shape,), condition.shape, eval_select if is_equal else eval_broadcast)


def broadcast(shapes: list[Shape]) -> Shape | None:
    """Return the common shape, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def one_element_each(node: Node) -> bool:
    """Return whether inputs and output, as the file gives it, all have one element."""
    operands = [*(node.input(position) for position in range(3)), node.outputs[0]]
    return all(prod(operand.shape) == 1 for operand in operands)


@filling(
    lambda picked, condition, x, y: (x.shape, x.dtype),
    once=lambda picked, condition, x, y: _broadcast(picked, condition, x, y),
)
def eval_select(picked: Shape, out: Array, condition: Array, x: Array, y: Array) -> Call:
    """Source: Select, of three operands of one shape, `picked`."""
    bits = np.dtype(f"u{out.dtype.itemsize}")
    values = (np.asarray(a, order="C").reshape(-1).view(bits) for a in (x, y, out))
    return _select.bound(np.asarray(condition, order="C").reshape(-1), *values)


def _broadcast(picked: Shape, condition: Array, x: Array, y: Array) -> Array:
    chosen: Array = np.where(condition.reshape(picked), x, y)
    return chosen


@filling(
    lambda picked, condition, x, y: (np.broadcast_shapes(picked, x.shape, y.shape), x.dtype),
    once=lambda picked, condition, x, y: _broadcast(picked, condition, x, y),
)
def eval_broadcast(picked: Shape, out: Array, condition: Array, x: Array, y: Array) -> Call:
    """Source: RankOneSelect, BroadcastSelect5DSlow. `picked` is the condition's shape as x sees it."""
    shape = out.shape or (1,)
    bits = np.dtype(f"u{out.dtype.itemsize}")
    steps = [broadcast_steps(of, shape) for of in (picked, x.shape, y.shape)]
    rows = [flat_places(shape[:-1], step[:-1]) for step in steps]
    values = (np.asarray(a, order="C").reshape(-1).view(bits) for a in (x, y))
    flags, target = np.asarray(condition, order="C").reshape(-1), out.reshape(len(rows[0]), shape[-1]).view(bits)
    return _select_rows.bound(target, *rows, flags, *values, *(step[-1] for step in steps))


@in_pieces(condition="r", x="r", y="r", out="r")
@compiled
def _select(condition: Array, x: Array, y: Array, out: Array) -> None:
    """Compute out = x where the condition holds, else y.

    Eval guarantees: all have the same size.
    """
    for i in range(out.size):
        first, second = x[i], y[i]
        out[i] = first if condition[i] else second


@in_pieces(out="r", condition_rows="r", x_rows="r", y_rows="r")
@compiled
def _select_rows(
    out: Array,
    condition_rows: Array,
    x_rows: Array,
    y_rows: Array,
    condition: Array,
    x: Array,
    y: Array,
    condition_step: Int,
    x_step: Int,
    y_step: Int,
) -> None:
    """Compute rows of `out` (R, N) as _select does, from operands whose rows begin at these places.

    Eval guarantees: row + step * n is inside the operand for all n below N.
    """
    for r in range(out.shape[0]):
        c, i, j = condition_rows[r], x_rows[r], y_rows[r]
        if condition_step == 0:
            source, start, step = (x, i, x_step) if condition[c] else (y, j, y_step)
            if step == 1:
                for n in range(out.shape[1]):
                    out[r, n] = source[start + n]
            else:
                for n in range(out.shape[1]):
                    out[r, n] = source[start]
        elif x_step == 1 and y_step == 1:
            for n in range(out.shape[1]):
                first, second = x[i + n], y[j + n]
                out[r, n] = first if condition[c + n] else second
        else:
            for n in range(out.shape[1]):
                first, second = x[i + x_step * n], y[j + y_step * n]
                out[r, n] = first if condition[c + n] else second


def eval_single(shape: Shape, condition: Array, x: Array, y: Array) -> Array:
    """Source: reference_ops::Select on one element."""
    return (x if condition.reshape(()) else y).reshape(shape)


_SELECT = (
    Kernel("SELECT", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select, (1, 4)),
    Kernel("SELECT_V2", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select_v2, (1, 2)),
)


def maximum_float(a: Array, b: Array) -> Array:
    """Return the second operand if the comparison fails: for a NaN in either, and for zeros of either sign."""
    return np.where(a > b, a, b)


def minimum_float(a: Array, b: Array) -> Array:
    """Return the second operand if the comparison fails: for a NaN in either, and for zeros of either sign."""
    return np.where(a < b, a, b)


def larger_number(a: Array, b: Array) -> Array:
    """Compute fmaxnm: a NaN loses, 0.0 is larger than -0.0."""
    return np.where(a == b, _bits(np.bitwise_and, a, b), np.fmax(a, b))


def smaller_number(a: Array, b: Array) -> Array:
    """Compute fminnm: a NaN loses, -0.0 is smaller than 0.0."""
    return np.where(a == b, _bits(np.bitwise_or, a, b), np.fmin(a, b))


def _bits(operation: np.ufunc, a: Array, b: Array) -> Array:
    return np.asarray(operation(a.view(np.uint32), b.view(np.uint32))).view(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class LargerData:
    """Constants of the form of XNNPACK."""

    shape: Shape
    choose: Callable[[Array, Array], Array]
    swaps: bool  # the second operand is the first one of the comparison
    limit: Array | None  # float32, replaces the constant operand


def prepare_choice(node: Node, arithmetic: Arithmetic, choose: Callable[[Array, Array], Array]) -> Prepared:
    """Decide which operand comes first. Infinite limits without an effect leave subnormal numbers as they are."""
    a, b = node.input(0), node.input(1)
    shape = broadcast_shape(node, a, b)
    for x, limit, swaps in ((a, b, True), (b, a, False)):
        if limit.value is not None and limit.is_constant and limit.value.size == 1 and len(limit.shape) <= len(x.shape):
            value = np.array(limit.value.reshape(-1)[0] or 0, np.float32)
            if np.isinf(value) and choose(np.zeros_like(value), value) == 0:
                return Prepared((shape,), (shape, 1 - swaps), eval_copy)
            return Prepared((shape,), LargerData(shape, choose, swaps, value), eval_choice)
    return Prepared((shape,), LargerData(shape, choose, _is_repeated(a, b), None), eval_choice)


def _is_repeated(a: Operand, b: Operand) -> bool:
    """Return whether `a` has one element along the last dimension in which `b` has more, and they share none after."""
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    first, second = next((pair for pair in pairs if max(pair) > 1), (len(a.shape), len(b.shape)))
    return first < second and first <= 1


@filling(lambda data, *_: (data.shape, np.float32))
def eval_choice(data: LargerData, out: Array, a: Array, b: Array) -> Call:
    """Choose; nothing is rounded. Subnormals are zeros of their sign."""
    first, second = (b, a) if data.swaps else (a, b)
    first = first if data.limit is None else data.limit
    return lambda: np.copyto(out, data.choose(subnormals_as_zeros(first), subnormals_as_zeros(second)))


@filling(lambda data, *_: (data[0], np.float32))
def eval_copy(data: tuple[Shape, int], out: Array, a: Array, b: Array) -> Call:
    """Copy the operand that is not the limit."""
    return Copying((a, b)[data[1]], out)


_BY_XNNPACK = tuple(
    delegate(Kernel(op, "float32 float32 -> float32", partial(prepare_choice, choose=choose), (1, 4)), takes)
    for op, choose in (("MAXIMUM", maximum_float), ("MINIMUM", minimum_float))
)

_MAXIMUM_MINIMUM = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_BY_XNNPACK),
    *(Kernel("MAXIMUM", f"{t} {t} -> {t}", prepare_plain(maximum_float), (1, 4)) for t in ("float32", "float16")),
    *(
        Kernel("MAXIMUM", f"{t} {t} -> {t}", prepare_plain(np.maximum), (1, 4))
        for t in ("uint8", "int8", "int16", "int32", "int64")
    ),
    *(Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(minimum_float), (1, 4)) for t in ("float32", "float16")),
    *(
        Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(np.minimum), (1, 4))
        for t in ("uint8", "int8", "int16", "int32", "int64")
    ),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        Kernel("MAXIMUM", "float32 float32 -> float32", prepare_plain(larger_number), (1, 4)),
        Kernel("MINIMUM", "float32 float32 -> float32", prepare_plain(smaller_number), (1, 4)),
    ),
)


_STABLEHLO_ARITHMETIC = (
    *kernels_elementwise("STABLEHLO_ADD", np.add, NUMBERS),
    *kernels_elementwise("STABLEHLO_MULTIPLY", np.multiply, NUMBERS),
    *kernels_elementwise("STABLEHLO_MAXIMUM", Choice(largest=True), NUMBERS),
    *kernels_elementwise("STABLEHLO_MINIMUM", Choice(largest=False), NUMBERS),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_XNNPACK, *_COMPARISONS, *_LOGIC, *_SELECT, *_MAXIMUM_MINIMUM, *_STABLEHLO_ARITHMETIC)
