"""REDUCE_ALL, _ANY, _MAX, _MIN, _PROD, windows, running sums, norms.

L2_NORMALIZATION: y = x / sqrt(sum of x * x), over the last axis.

| operand | shape          | types                | quantization                          |
|---------|----------------|----------------------|---------------------------------------|
| x       | rank 1 or more | float32, uint8, int8 | per tensor                            |
| y       | as x           | as x                 | scale 1/128, zero point 128; int8: 0  |

Options: fused_activation_function must be NONE.
Source: LiteRT 2.3, l2norm.cc Prepare, Eval; reference/l2normalization.h, reference/integer_ops/l2normalization.h
L2Normalization.

LOCAL_RESPONSE_NORMALIZATION: x * (bias + alpha * sum of squares over neighbouring channels) ** -beta.

| operand | shape      | types   |
|---------|------------|---------|
| x       | N, H, W, C | float32 |
| y       | as x       | float32 |

Options: radius, bias, alpha, beta. Channel c sees channels c - radius to c + radius - 1: one less above than below.
Exactness: exact on the same libm (pow).
Source: LiteRT 2.3, local_response_norm.cc; reference_ops::LocalResponseNormalization.

REDUCE_ALL, REDUCE_ANY: y is true if every x, or any x, over the axes is.

| operand | shape                | types |
|---------|----------------------|-------|
| x       | any                  | bool  |
| axes    | any                  | int32 |
| y       | x without, or with 1 | bool  |

Options: keep_dims.
Source: LiteRT 2.3, reduce.cc PrepareAllOrAny, EvalGeneric.

REDUCE_MAX, REDUCE_MIN: the largest or smallest of x over the axes.

| operand | shape                | types                       | quantization                    |
|---------|----------------------|-----------------------------|---------------------------------|
| x       | any                  | float32, int32, int64, bool | none                            |
|         |                      | uint8, int8, int16          | per tensor; int16: zero point 0 |
| axes    | any                  | int32                       |                                 |
| y       | x without, or with 1 | as x                        | x's                             |

Options: keep_dims. NaN is skipped, unless it is the first of all elements and every axis is reduced.
float32 by the optimized kernels of tflite-runtime 2.14 and LiteRT on x86-64: of equal elements the last counts, and NaN
stays until the next element, as observed with zeros of both signs; earlier releases and AArch64 were not asked.
Source: LiteRT 2.3, reduce.cc EvalGeneric, ReduceAllDims, EvalType; reference/reduce.h ReduceGeneric.

REDUCE_MAX and REDUCE_MIN by XNNPACK: codes move, regardless of the output's scale; on x86-64 also of float32.

Operands, options and refusals: reductions.py, except that scales may differ. Floats are compared in the order in
which XNNPACK adds them (tflq/engine/kernels/families/xnnpack.py), but by four registers of every width, whose lanes
all take what is left of a stretch. Of two that are equal or include NaN the later one stays, and infinities begin.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's rminmax kernels of qs8 and qu8, f32-rmax and
f32-rmin avx_u32_acc4 and avx512f_u64_acc4, f32-rdmax and f32-rdmin 2p2x.

REDUCE_PROD: y = product of x over the axes.

| operand | shape                | types                 | quantization                             |
|---------|----------------------|-----------------------|------------------------------------------|
| x       | any                  | float32, int32, int64 | none                                     |
|         |                      | int8, int16           | none; or per tensor, int16: zero point 0 |
| axes    | any                  | int32                 |                                          |
| y       | x without, or with 1 | as x                  | as x has any                             |

Options: keep_dims. Over axes of size 1 alone, the optimized resolver copies quantized integers without any scaling; up
to LiteRT 2.1 it reads memory that nothing has written, which is refused.
Source: LiteRT 2.3, reduce.cc PrepareProd, GetQuantProdScaling, EvalQuantizedProd; reference/reduce.h
QuantizedReduceProd; optimized/reduce.h QuantizedReduceProd, ReduceIsCopy. TensorFlow 2.14, optimized/reduce.h
QuantizedReduceProd.

REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW: every window folded to one element.

| operand   | shape                      | types                                                    |
|-----------|----------------------------|----------------------------------------------------------|
| x         | 1 to 6 dimensions          | float32, float64, int8, uint8, int16, int32, int64, bool |
| start     | one element                | as x                                                     |
| y         | positions of the window    | as x                                                     |

REDUCE_WINDOW: operands window, strides, dilations (constant int64, one a dimension); option reduce_function.
STABLEHLO_REDUCE_WINDOW: options window_dimensions, window_strides, base_dilations, window_dilations, padding (low and
high by dimension; `start` fills it), body_subgraph_index. Of the body only the name of its one operator is read.
Sums of bool are kept as the bytes they are.
Source: LiteRT 2.3, stablehlo_reduce_window.cc TFLiteData, StablehloData, ReduceWindow, StridedReduce.

CUMSUM: running sums along one dimension.

| operand | shape                  | types                 |
|---------|------------------------|-----------------------|
| x       | at least one dimension | float32, int32, int64 |
| axis    | one element            | int32                 |
| y       | as x                   | as x                  |

Options: exclusive (a sum leaves its own element out), reverse (from the back).
Source: LiteRT 2.3, cumsum.cc; optimized_ops.h CumsumImpl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

import numpy as np

from tflq.engine.jit import flushing
from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import (
    axis_within,
    integer,
    integers,
    integers_option,
    require_rank,
    require_rank_from,
    require_same_type,
    require_zero_point_zero,
)
from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import (
    AXES,
    Fold,
    ReducedAxes,
    add,
    as_rows,
    both,
    either,
    folding,
    highest,
    in_windows,
    larger,
    larger_number,
    lowest,
    multiply,
    reduced_axes,
    rows_of,
    smaller,
    smaller_number,
    sum_rows,
    takes,
    takes_floats,
)
from tflq.engine.kernels.families.unary import same_type, unclaimed_floats
from tflq.engine.kernels.families.xnnpack import XnnpackSums
from tflq.engine.kernels.geometry.volumes import DilatedInput, move_apart, spread
from tflq.engine.kernels.geometry.windows import flat_places
from tflq.engine.kernels.kernel import SAME_LIBM, Call, Kernel, Node, Operand, Prepared, Shape, filling, valid
from tflq.engine.kernels.validity import opt, spec, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.elementary import inverse_sqrt
from tflq.engine.numerics.estimates import subnormals_as_zeros
from tflq.engine.numerics.libm import power
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding, multiply_wide, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.model.ir.model import enum
from tflq.typing import Array

EPSILON = np.float32(1e-6)


def _operands(node: Node) -> tuple[Operand, Operand]:
    x, y = same_type(node)
    require_rank_from(node, x, 1)
    node.check(int(node.options["fused_activation_function"]) == 0, "fused activation function", expected="NONE")
    return x, y


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the input's zero point only: its scale cancels out."""
    x, y = _operands(node)
    node.check(bool(y.scale == np.float32(1 / 128)), "scale", y, expected="1/128", got=y.scale)
    middle = 128 if x.type == TensorType.UINT8 else 0
    node.check(y.zero_point == middle, "zero point", y, expected=middle, got=y.zero_point)
    return Prepared((x.shape,), x.zero_point, eval_uint8 if x.type == TensorType.UINT8 else eval_int8)


def eval_uint8(zero_point: int, x: Array) -> Array:
    """Source: L2Normalization (uint8). Rounding: in the inverse root; 128 * x is scaled to the right."""
    out = np.empty(x.shape, np.uint8)
    _normalise(as_rows(x), int(zero_point), 7, 0, 128, 0, 255, as_rows(out))
    return out


def eval_int8(zero_point: int, x: Array) -> Array:
    """Source: reference_integer_ops::L2Normalization. Rounding: in the inverse root; x is scaled, 7 bits less far."""
    out = np.empty(x.shape, np.int8)
    _normalise(as_rows(x), int(zero_point), 0, 7, 0, -128, 127, as_rows(out))
    return out


@in_pieces(8, x="r", out="r")
@compiled
def _normalise(x: Array, zero_in: Int, before: Int, after: Int, zero_out: Int, low: Int, high: Int, out: Array) -> None:
    """Normalise rows. The output's factor 2**7 shifts the centred code (`before`) or the multiplier (`after`) left.

    Eval guarantees: `out` has the shape of `x`.
    """
    rows, depth = x.shape
    for r in range(rows):
        total = np.int64(0)
        for c in range(depth):
            centred = np.int64(x[r, c]) - zero_in
            total = wrap_int32(total + centred * centred)
        root, right = inverse_sqrt(total)
        for c in range(depth):
            centred = (np.int64(x[r, c]) - zero_in) << np.int64(before)
            out[r, c] = clamp(multiply_double_rounding(centred, root, after - right) + zero_out, low, high)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = _operands(node)
    return Prepared((x.shape,), None, eval_float)


def eval_float(data: None, x: Array) -> Array:
    """Source: L2Normalization (float). Rounding: float32 throughout; the sum runs in order."""
    rows = as_rows(x)
    norm = np.sqrt(sum_rows(rows * rows))
    return np.asarray(rows / np.where(norm < EPSILON, EPSILON, norm)).reshape(x.shape)


_L2_NORMALIZATION = (
    Kernel("L2_NORMALIZATION", "float32 -> float32", prepare_float, (1, 2)),
    *(Kernel("L2_NORMALIZATION", f"{t} -> {t}", prepare_quantized, (1, 2)) for t in ("uint8", "int8")),
)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The options: float32 in the file, float64 in the source's structure."""

    radius: int  # channels
    bias: float
    alpha: float
    beta: float


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the options only."""
    x = node.input(0)
    require_rank(node, x, 4)
    bias, alpha, beta = (float(node.options[name]) for name in ("bias", "alpha", "beta"))
    radius = min(int(node.options["radius"]), x.shape[3])
    return Prepared((x.shape,), OpData(radius, bias, alpha, beta), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Source: LocalResponseNormalization. Rounding: float32 squares and sums, from the lowest channel on; the
    factor in float64, to float32 once.
    """
    squares, sums = x * x, np.zeros_like(x)
    channels = x.shape[3]
    for offset in range(-data.radius, data.radius):
        first, last = max(0, -offset), min(channels, channels - offset)
        if first < last:
            sums[..., first:last] += squares[..., first + offset : last + offset]
    bases = data.bias + data.alpha * sums.astype(np.float64)
    return x * power(bases, -data.beta).astype(np.float32)


_REFERENCE = (Kernel("LOCAL_RESPONSE_NORMALIZATION", "float32 -> float32", prepare, (1, 1), exactness=SAME_LIBM),)
_LOCAL_RESPONSE_NORMALIZATION = (*_REFERENCE, *valid(opt(), *unclaimed_floats(_REFERENCE)))


_REDUCE_ALL_ANY = (
    *rows_of("REDUCE_ALL", "bool", folding(both, highest), 1),
    *rows_of("REDUCE_ANY", "bool", folding(either, lowest), 1),
)


_TYPES = "float32 int32 int64 uint8 int8 int16 bool"
REDUCE_MAX = rows_of("REDUCE_MAX", _TYPES, folding(larger, lowest), 3)
REDUCE_MIN = rows_of("REDUCE_MIN", _TYPES, folding(smaller, highest), 3)

_BOOL = tuple(row for row in (*REDUCE_MAX, *REDUCE_MIN) if row.signature.makes(TensorType.BOOL))
_REDUCE_MAX_MIN_REFERENCE = (
    *(row for row in (*REDUCE_MAX, *REDUCE_MIN) if row not in _BOOL),
    *valid(tflite("litert-2.3"), *_BOOL),
    *valid(spec(), *_BOOL),
    *valid(
        opt("tflite-2.14", cpu="x86-64"),
        *rows_of("REDUCE_MAX", "float32", folding(flushing.larger, lowest), 3),
        *rows_of("REDUCE_MIN", "float32", folding(flushing.smaller, highest), 3),
    ),
)


def moving(row: Kernel) -> Kernel:
    """Return the row with an output that is read as quantized like its input."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        alike = node.input(0).quantization
        return row.prepare(node.with_outputs(lambda y: replace(y, quantization=alike)), arithmetic)

    return Kernel(row.op, row.types, prepare, row.versions, AXES)


@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """The largest or smallest elements over axes."""

    merged: XnnpackSums  # the order of the elements
    pick: np.ufunc  # np.maximum or np.minimum
    before: np.ufunc  # np.greater or np.less: whether the earlier element stays
    start: np.float32
    shape: Shape

    def later(self, a: Array, b: Array) -> Array:
        """Return the elements that MAXPS or MINPS returns."""
        return np.where(self.before(a, b), a, b)


def _prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Merge the axes."""
    is_max = node.op == "REDUCE_MAX"
    pick, before = (np.maximum, np.greater) if is_max else (np.minimum, np.less)
    start, shape = np.float32(-np.inf if is_max else np.inf), reduced_axes(node).shape
    merged = XnnpackSums.of_node(node, arithmetic.xnnpack_lanes)
    return Prepared((shape,), Extremes(merged, pick, before, start, shape), evaluate_xnnpack)


def evaluate_xnnpack(data: Extremes, x: Array, axes: Array) -> Array:
    """Rounding: none; subnormal numbers are zeros. The order decides about NaN and signs of zero only."""
    rows = data.merged.stretches(subnormals_as_zeros(x))
    found = data.pick.reduce(rows, axis=(1, 2))
    unsure = np.isnan(found) | (found == 0)
    if unsure.any():
        found[unsure] = _in_order(data, rows[unsure])
    return np.asarray(found.reshape(data.shape))


def _in_order(data: Extremes, rows: Array) -> Array:
    """Return the extremes of rows (R, outer, inner), one comparison after the other."""
    found, lanes = np.full((len(rows), 1), data.start), data.merged.registers[1]
    for stretch in rows.transpose(1, 0, 2):
        whole = stretch.shape[1] // lanes * lanes
        blocks = stretch[:, :whole].reshape(len(rows), -1, lanes)
        registers = np.repeat(np.repeat(found, lanes, 1)[:, None], 4, 1)
        rounds = blocks.shape[1] // 4 if lanes > 1 else 0
        for block in range(rounds):
            registers = data.later(registers, blocks[:, 4 * block : 4 * block + 4])
        pairs = data.later(registers[:, ::2], registers[:, 1::2])
        found = data.later(pairs[:, 0], pairs[:, 1])
        for block in range(4 * rounds, blocks.shape[1]):
            found = data.later(found, blocks[:, block])
        for left in range(whole, stretch.shape[1]):
            found = data.later(found, stretch[:, left : left + 1])
        while found.shape[1] > 1:
            half = found.shape[1] // 2
            found = data.later(found[:, :half], found[:, half:])
    return found[:, 0]


_FLOATS = (
    Kernel(row.op, row.types, _prepare, row.versions, AXES)
    for row in (*REDUCE_MAX, *REDUCE_MIN)
    if row.types == "float32 int32 -> float32"
)
_XNNPACK = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *(delegate(row, takes_floats) for row in _FLOATS)),
    *valid(
        xnnpack("litert-2.1"),
        *(
            delegate(moving(row), takes)
            for row in (*REDUCE_MAX, *REDUCE_MIN)
            if row.types in ("uint8 int32 -> uint8", "int8 int32 -> int8")
        ),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class ReduceProdData:
    """Constants of the quantized forms."""

    reduced: ReducedAxes
    input_zero_point: ZeroPoint  # LSB of input
    multiplier: Multiplier  # of the scaling after every product, Q31
    output_zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def _start(dtype: np.dtype[np.generic]) -> int:
    return 1


prepare_plain = folding(multiply, _start)


def prepare_integer(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multiply plainly without quantization; else scale each of n products by input / output scale ** (1/n)."""
    x, y = node.input(0), node.outputs[0]
    if not x.is_quantized:
        return prepare_plain(node, arithmetic)
    if x.type.label == "int16":
        require_zero_point_zero(node, x, y)
    reduced = reduced_axes(node)
    if math.prod(x.shape) == 0:
        raise UndefinedResultError("QuantizedReduceProd", "no elements to multiply: the output stays unwritten")
    if not y.scale > 0:
        raise UndefinedResultError(node.op, "a scale of 0")
    scaling = float(x.scale) / math.pow(float(y.scale), 1.0 / reduced.count)
    clamp = type_range(x.type.label)
    data = ReduceProdData(reduced, x.zero_point, quantize_multiplier(scaling), y.zero_point, clamp)
    return Prepared((reduced.shape,), data, eval_quantized)


def eval_quantized(data: ReduceProdData, x: Array, axes: Array) -> Array:
    """Source: QuantizedReduceProd. Rounding: half up after every product, by the int64 form. Overflow: wraps int32."""
    rows = data.reduced.rows(x)
    products = np.empty((rows.shape[0], rows.shape[2]), np.int64)
    out = np.empty(products.shape, x.dtype)
    _fold(rows, int(data.input_zero_point), *data.multiplier, products, True)
    _narrow(products, *data.multiplier, int(data.output_zero_point), *data.clamp, out)
    return out.reshape(data.reduced.shape)


@in_pieces(8, x="ok", products="o", begin="k")
@compiled
def _fold(x: Array, zero_in: Int, mantissa: Int, shift: Int, products: Array, begin: bool) -> None:
    """Prepare guarantees: `x` is (outer, reduced, inner), and `products` (outer, inner)."""
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                centred = np.int64(x[o, k, i]) - zero_in
                if begin and k == 0:
                    products[o, i] = centred
                else:
                    products[o, i] = wrap_int32(multiply_wide(products[o, i] * centred, mantissa, shift))


@in_pieces(8, products="o", out="o")
@compiled
def _narrow(products: Array, mantissa: Int, shift: Int, zero_out: Int, low: Int, high: Int, out: Array) -> None:
    """Rescale `products` into `out`. The caller guarantees: `products` has the shape of `out`."""
    outer, inner = out.shape
    for o in range(outer):
        for i in range(inner):
            out[o, i] = clamp(wrap_int32(multiply_wide(products[o, i], mantissa, shift)) + zero_out, low, high)


def prepare_copying(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Copy if, by the shapes, nothing is multiplied."""
    prepared = prepare_integer(node, arithmetic)
    reduced = reduced_axes(node)
    return prepared if reduced.count > 1 else Prepared(prepared.shapes, reduced.shape, eval_copy)


def eval_copy(shape: Shape, x: Array, axes: Array) -> Array:
    """Source: ReduceIsCopy. No rounding."""
    return x.reshape(shape)


def prepare_multiplied(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse reductions that multiply nothing."""
    if node.input(0).is_quantized and reduced_axes(node).count == 1:
        raise UndefinedResultError("QuantizedReduceProd", "nothing to multiply: temporary memory is read unwritten")
    return prepare_integer(node, arithmetic)


_REDUCE_PROD = (
    *rows_of("REDUCE_PROD", "float32 int32 int64", prepare_plain, 2),
    *rows_of("REDUCE_PROD", "int8 int16", prepare_integer, 2),
    *valid(opt("litert-2.2"), *rows_of("REDUCE_PROD", "int8 int16", prepare_copying, 2)),
    *valid(opt(until="litert-2.1"), *rows_of("REDUCE_PROD", "int8 int16", prepare_multiplied, 2)),
)


TYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
_MAX_RANK = 6
FOLDS: Mapping[str, Fold] = MappingProxyType(
    {"ADD": add, "MUL": multiply, "MAXIMUM": larger_number, "MINIMUM": smaller_number, "ALL": both, "ANY": either}
)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows over an input, in elements."""

    fold: Fold
    size: Shape
    shape: Shape  # of the output
    strides: Shape  # in elements of the flat input
    dilations: Shape  # likewise


def windows(node: Node, fold: Fold, shape: Shape, size: Shape, strides: Shape, dilations: Shape) -> Windows:
    """Return windows over an input of that shape; none where one does not fit."""
    node.check(1 <= len(shape) <= _MAX_RANK, "number of dimensions", expected=f"1 to {_MAX_RANK}", got=len(shape))
    for name, values in (("window", size), ("strides", strides), ("dilations", dilations)):
        node.check(len(values) == len(shape), f"number of {name}", expected=len(shape), got=len(values))
        node.check(all(v > 0 for v in values), name, expected="above 0", got=list(values))
    reaches = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    steps = zip(shape, reaches, strides, strict=True)
    out = tuple(0 if length < reach else (length - reach) // stride + 1 for length, reach, stride in steps)
    flat = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    apart = tuple(step * stride for step, stride in zip(flat, strides, strict=True))
    return Windows(fold, size, out, apart, tuple(step * d for step, d in zip(flat, dilations, strict=True)))


@filling(lambda data, x, *_: (data.shape, x.dtype))
def fold_windows(data: Windows, out: Array, x: Array, start: Array, *_: Array) -> Call:
    """Fold each window's elements in order, from `start` on. bool counts as int8, as in the source.

    Rounding: one per element, of the type. Overflow: integers wrap.
    """
    arrays = (np.asarray(a, order="C").reshape(-1) for a in (x, start, out))
    codes, first, total = (a.view(np.int8) if a.dtype == np.bool_ else a for a in arrays)
    if not out.size:
        return lambda: None
    begin, places = flat_places(data.shape, data.strides), flat_places(data.size, data.dilations)
    return in_windows(data.fold).bound(begin, total, codes, first[:1], places)


def prepare_window(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry and the fold."""
    number = int(node.options["reduce_function"])
    fold = next((FOLDS[name] for name, code in enum("ReduceWindowFunction").items() if code == number > 0), None)
    if fold is None:
        node.refuse("reduce_function", expected=sorted(FOLDS), got=number)
    size, strides, dilations = (integers(node, position) for position in (2, 3, 4))
    data = windows(node, fold, node.input(0).shape, size, strides, dilations)
    return Prepared((data.shape,), data, fold_windows)


_BODIES = {
    "ADD": "ADD",
    "STABLEHLO_ADD": "ADD",
    "MUL": "MUL",
    "STABLEHLO_MULTIPLY": "MUL",
    "MAXIMUM": "MAXIMUM",
    "STABLEHLO_MAXIMUM": "MAXIMUM",
    "MINIMUM": "MINIMUM",
    "STABLEHLO_MINIMUM": "MINIMUM",
    "LOGICAL_AND": "ALL",
    "STABLEHLO_AND": "ALL",
    "LOGICAL_OR": "ANY",
    "STABLEHLO_OR": "ANY",
}


@dataclass(frozen=True, slots=True, eq=False)
class ReduceWindowData:
    """Spreading and padding, and the windows over the result."""

    spread: DilatedInput
    windows: Windows


def prepare_spread_window(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry and the fold."""
    shape = node.input(0).shape
    rank = len(shape)
    ones = (1,) * rank
    size = integers_option(node, "window_dimensions")
    strides, apart, dilations = (
        integers_option(node, name) or ones for name in ("window_strides", "base_dilations", "window_dilations")
    )
    edges = integers_option(node, "padding") or (0,) * (2 * rank)
    node.check(len(edges) == 2 * rank, "length of padding", expected=2 * rank, got=len(edges))
    node.check(len(apart) == rank and min(apart) > 0, "base_dilations", expected=f"{rank} above 0", got=list(apart))
    around = spread(shape, edges[::2], edges[1::2], apart)
    padded = any(edges) or max(apart) > 1
    node.check(not padded or min(around.shape) > 0, "padding leaves nothing", expected="above 0", got=around.shape)
    data = ReduceWindowData(around, windows(node, _fold_reduce_window(node), around.shape, size, strides, dilations))
    return Prepared((data.windows.shape,), data, eval_spread_window)


def _fold_reduce_window(node: Node) -> Fold:
    names = node.around().operators(int(node.options["body_subgraph_index"]))
    if len(names) != 1 or names[0] not in _BODIES:
        node.refuse("body", expected=f"one of {', '.join(sorted(_BODIES))}", got=list(names))
    return FOLDS[_BODIES[names[0]]]


def eval_spread_window(data: ReduceWindowData, x: Array, start: Array) -> Array:
    """Source: PadCropReduceWindow."""
    return fold_windows(data.windows, move_apart(data.spread, x, start.reshape(-1)[0]), start)


_REDUCE_WINDOW = (
    *tuple(Kernel("REDUCE_WINDOW", f"{t} {t} int64 int64 int64 -> {t}", prepare_window, (1, 1)) for t in TYPES),
    *tuple(Kernel("STABLEHLO_REDUCE_WINDOW", f"{t} {t} -> {t}", prepare_spread_window, (1, 1)) for t in TYPES),
)


@dataclass(frozen=True, slots=True)
class CumsumData:
    """The dimension summed along; `order` turns it around where sums run from the back."""

    axis: int
    order: tuple[slice, ...]
    exclusive: bool


def prepare_cumsum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axis, which counts from the back if negative."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    require_rank_from(node, x, 1)
    axis = axis_within(node, integer(node, 1), len(x.shape))
    step = slice(None, None, -1 if node.options["reverse"] else None)
    data = CumsumData(axis, (*(slice(None),) * axis, step), bool(node.options["exclusive"]))
    return Prepared((x.shape,), data, eval_cumsum)


def eval_cumsum(data: CumsumData, x: Array, axis: Array) -> Array:
    """Source: Eigen's scan: from 0, one addition after the other. Overflow: integers wrap."""
    terms = x[data.order]
    sums = np.add.accumulate(np.add(terms, 0, dtype=x.dtype), data.axis, dtype=x.dtype)
    if data.exclusive:
        before = (slice(None),) * data.axis
        shifted = np.zeros_like(sums)
        shifted[(*before, slice(1, None))] = sums[(*before, slice(None, -1))]
        sums = shifted
    return np.asarray(sums[data.order], order="C")


_CUMSUM = tuple(
    Kernel("CUMSUM", f"{t} int32 -> {t}", prepare_cumsum, (1, 1), shape_operands=(1,))
    for t in ("float32", "int32", "int64")
)

#: The rows of all operators above.
KERNELS = (
    *_L2_NORMALIZATION,
    *_LOCAL_RESPONSE_NORMALIZATION,
    *_REDUCE_ALL_ANY,
    *_REDUCE_MAX_MIN_REFERENCE,
    *_XNNPACK,
    *_REDUCE_PROD,
    *_REDUCE_WINDOW,
    *_CUMSUM,
)
