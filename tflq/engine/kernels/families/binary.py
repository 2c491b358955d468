"""Element-wise operators of two inputs that broadcast, computed in the operands' own type.

The limits of float ADD, SUB, MUL, DIV and RELU on AArch64: what becomes of NaN, and of -0.0 at a limit of 0.

A loop holds its numbers inside the limits in one of three ways, or in several, one after the other:

- compared, as std::min and std::max are written: NaN stays, and so does -0.0;
- in vectors of four, by fmax and fmin: NaN stays, -0.0 becomes 0.0;
- as numbers, by fmaxnm and fminnm: NaN becomes the lower limit, -0.0 becomes 0.0.

Source: LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h AddElementwise, MulElementwise, SubWithActivation; reference
add.h, sub.h, mul.h, div.h ActivationFunctionWithMinMax; activations.cc. Which form a compiler chose is seen in the
packages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place, float_range, number_range
from tflq.engine.kernels.families.ordered import clamp_std
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, run_of
from tflq.engine.kernels.geometry.axes import broadcast_shape, repeat_blocks
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepare, Prepared, Shape, filling
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array

Function = Callable[..., Array]


def both(node: Node) -> tuple[Operand, Operand, Operand]:
    """Return the two inputs, whose types must agree, and the output."""
    a, b = node.input(0), node.input(1)
    node.check(a.type == b.type, "input types differ", b, expected=a.type.label, got=b.type.label)
    return a, b, node.outputs[0]


@dataclass(frozen=True, slots=True, eq=False)
class Clamped:
    """A NumPy function and the activation's limits, in the output's type."""

    function: Function
    clamp: NumberClamp


def prepare_clamped(function: Function) -> Prepare:
    """Return a prepare for `function` in the operands' own type: integers wrap, then results are clamped."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, y = both(node)
        data = Clamped(function, number_range(node, np.dtype(y.type.label)))
        return Prepared((broadcast_shape(node, a, b),), data, eval_clamped)

    return prepare


@filling(
    lambda data, a, b: (np.broadcast_shapes(a.shape, b.shape), data.clamp.low.dtype),
    once=lambda data, a, b: _clamp_once(data, a, b),
)
def eval_clamped(data: Clamped, out: Array, a: Array, b: Array) -> Call:
    """Source: ActivationFunctionWithMinMax(op(a, b)). Rounding: one, of the type. Overflow: integers wrap."""

    number = COMPILED.get(data.function)
    if number is not None and out.dtype in _COMPILED_TYPES and out.size:
        return row_by_row(_LOOPS, number, SWAPPED, data.clamp, out, a, b)

    def call() -> None:
        data.function(a, b, out=out)
        clamp_in_place(out, *data.clamp)

    return call


#: The functions that `_clamp_into` knows, by their numbers there.
COMPILED: dict[Function, int] = {np.add: 0, np.subtract: 1, np.multiply: 2}
#: Their numbers where the operands change places.
SWAPPED = {0: 0, 1: 3, 2: 2}
_COMPILED_TYPES = frozenset((np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)))
#: Elements that an operand is repeated to, so that loops are long.
_RUN = 256


@writes("out")
@in_pieces(a="r", b="r", out="r")
@compiled
def _clamp_into(a: Array, b: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    _clamp_row(a, b, function, low, high, out)


@writes("out")
@in_pieces(a="om", b="o", out="om")
@compiled
def _clamp_repeated(a: Array, b: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Prepare guarantees: `a` and `out` are (outer, times, inner) and not empty, `b` is (outer, inner)."""
    outer, times, inner = out.shape
    several = min(times, max(1, _RUN // inner))
    repeated = np.empty(several * inner, b.dtype)
    for o in range(outer):
        for start in range(0, repeated.size, inner):
            for i in range(inner):
                repeated[start + i] = b[o, i]
        for m in range(0, times, several):
            x, y = a[o, m : m + several].reshape(-1), out[o, m : m + several].reshape(-1)
            _clamp_row(x, repeated[: y.size], function, low, high, y)


def row_by_row(
    loops: RowLoops, number: int, swapped: Mapping[int, int], clamp: NumberClamp, out: Array, a: Array, b: Array
) -> Call:
    """Return the call that applies a function of `loops` to two operands of one type which broadcast to `out`.

    `swapped` are the numbers of the functions if the operands change places.
    """
    if a.size == b.size == out.size or not out.size:
        return loops.whole.bound(a.reshape(-1), b.reshape(-1), number, *clamp, out.reshape(-1))
    if a.size == out.size or number not in swapped:
        whole, other = a, b
    else:
        whole, other, number = b, a, swapped[number]
    blocks = repeat_blocks(other.shape, out.shape)
    if whole.size == out.size and blocks is not None:
        outer, times, inner = blocks
        parts = whole.reshape(blocks), np.asarray(other, order="C").reshape(outer, inner)
        return loops.repeated.bound(*parts, number, *clamp, out.reshape(outer, times, inner))
    repeated = np.empty((2, *out.shape), a.dtype)
    combine = loops.whole.bound(*repeated.reshape(2, -1), number, *clamp, out.reshape(-1))

    def call() -> None:
        repeated[0], repeated[1] = whole, other
        combine()

    return call


@compiled
def _clamp_row(a: Array, b: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Apply `function` to one row, then clamp. The caller guarantees: `a`, `b` and `out` have the same size."""
    kind = out.dtype.type
    if function == 0:
        for i in range(out.size):
            out[i] = clamp_std(kind(a[i] + b[i]), low, high)
    elif function == 1:
        for i in range(out.size):
            out[i] = clamp_std(kind(a[i] - b[i]), low, high)
    elif function == 2:
        for i in range(out.size):
            out[i] = clamp_std(kind(a[i] * b[i]), low, high)
    else:
        for i in range(out.size):
            out[i] = clamp_std(kind(b[i] - a[i]), low, high)


@dataclass(frozen=True, slots=True, eq=False)
class RowLoops:
    """RowLoops over operands of one size, and over one that repeats. Each applies a function of rows."""

    whole: Compiled[..., None]
    repeated: Compiled[..., None]

    @classmethod
    def of(cls, row: Compiled[..., None]) -> RowLoops:
        """Return the loops of a function of rows (a, b, number, low, high, out)."""
        return cls(_clamp_into.bind(_clamp_row=row), _clamp_repeated.bind(_clamp_row=row))


_LOOPS = RowLoops(_clamp_into, _clamp_repeated)


def _clamp_once(data: Clamped, a: Array, b: Array) -> Array:
    return clamp_in_place(np.asarray(data.function(a, b)), *data.clamp)


def prepare_plain(function: Function, scratch: int = 0) -> Prepare:
    """Return a prepare for `function` in the operands' own type, without an activation.

    The function works with `scratch` bytes for each element of its result.
    """

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        shape = broadcast_shape(node, a, b)
        return Prepared((shape,), function, eval_plain, scratch=scratch * math.prod(shape))

    return prepare


@filling(
    lambda _, a, b: (np.broadcast_shapes(a.shape, b.shape), a.dtype),
    once=lambda function, a, b: np.asarray(function(a, b)),
)
def eval_plain(function: Function, out: Array, a: Array, b: Array) -> Call:
    """Evaluate without rounding, except the function's own."""
    if isinstance(function, np.ufunc):
        return partial(function, a, b, out=out)
    return lambda: np.copyto(out, function(a, b))


#: Floats in a vector.
BLOCK = 4


class Run(NamedTuple):
    """The elements that one loop goes through."""

    length: int
    vectors: int  # the number of elements in front that go in vectors
    numbers: int  # those from here on are held as numbers; what lies between is compared


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    function: Callable[..., Array]
    clamp: NumberClamp
    run: Run


#: Every element compared; every element as a number.
COMPARED, NUMBERS = Run(1, 0, 1), Run(1, 0, 0)
#: The loops over operands of two shapes.
Loops = Callable[[Shape, Shape], Run]


def in_vectors(a: Shape, b: Shape) -> Run:
    """Return the run of whole blocks in vectors, the rest compared, if vector code takes the shapes."""
    length, _ = run_of(a, b)
    return Run(length, in_whole_blocks(length, BLOCK), length) if length else COMPARED


def where_equal(equal: Loops, broadcast: Run) -> Loops:
    """Return loops: `equal` for equal shapes, else `broadcast`."""
    return lambda a, b: equal(a, b) if a == b else broadcast


def held(function: Callable[..., Array], loops: Loops) -> Prepare:
    """Return a prepare for `function` of float32, held inside the activation's limits by `loops`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        data = OpData(function, float_range(node), loops(a.shape, b.shape))
        return Prepared((broadcast_shape(node, a, b),), data, evaluate)

    return prepare


def rectify(high: float, loops: Loops) -> Prepare:
    """Return a prepare that holds float32 between 0 and `high`; `loops` takes x's shape twice."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        limits = NumberClamp(np.float32(0), np.float32(high))
        return Prepared((x.shape,), OpData(np.copy, limits, loops(x.shape, x.shape)), evaluate)

    return prepare


def evaluate(data: OpData, *operands: Array) -> Array:
    """Rounding: one, of float32. Overflow: to the limits."""
    values = np.asarray(data.function(*operands), order="C")
    runs = values.reshape(-1, data.run.length)
    _hold_in_vectors(runs[:, : data.run.vectors], data.clamp.low)
    _hold_as_numbers(runs[:, data.run.numbers :], data.clamp.low)
    return clamp_in_place(values, *data.clamp)


def _hold_in_vectors(values: Array, low: np.float32) -> None:
    np.copyto(values, low, where=values <= low)


def _hold_as_numbers(values: Array, low: np.float32) -> None:
    np.copyto(values, low, where=~(values > low))


def limit(op: str, function: Callable[..., Array], loops: Loops, versions: tuple[int, int]) -> Kernel:
    """Return the row of an operator of two operands."""
    return Kernel(op, "float32 float32 -> float32", held(function, loops), versions)


def of_sums(a: Shape, b: Shape) -> Run:
    """Return the run of a sum. In repeated runs, the first element after whole blocks is the last compared.

    This does not hold if one operand is a single element in them.
    """
    length, stands_still = run_of(a, b)
    if a == b or stands_still or not length:
        return in_vectors(a, b)
    whole = in_whole_blocks(length, BLOCK)
    return Run(length, whole, min(whole + 1, length))


def of_equals(a: Shape, b: Shape) -> Run:
    """Return the run for equal shapes: if three elements are left over after blocks, the last is held as a number."""
    size = prod(a)
    return Run(size, 0, size - 1) if size > BLOCK and size % BLOCK == BLOCK - 1 else COMPARED
