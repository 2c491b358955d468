"""Element-wise operators of two inputs that broadcast, computed in the operands' own type."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place, number_range
from tflq.engine.kernels.families.ordered_sums import clamp_std
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.broadcast import broadcast_shape, repeat_blocks
from tflq.engine.kernels.kernel import Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array

Function = Callable[..., Array]
Prepare = Callable[[Node, Arithmetic], Prepared]


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
    if number is not None and out.dtype == np.float32:
        if a.size == b.size == out.size:
            return _clamp_into.bound(a.reshape(-1), b.reshape(-1), number, *data.clamp, out.reshape(-1))
        whole, other, number = (a, b, number) if a.size == out.size else (b, a, SWAPPED[number])
        blocks = repeat_blocks(other.shape, out.shape)
        if whole.size == out.size > 0 and blocks is not None:
            outer, times, inner = blocks
            parts = whole.reshape(blocks), np.asarray(other, order="C").reshape(outer, inner)
            return _clamp_repeated.bound(*parts, number, *data.clamp, out.reshape(outer, times, inner))

    def call() -> None:
        data.function(a, b, out=out)
        clamp_in_place(out, *data.clamp)

    return call


#: The functions that `_clamp_into` knows, by their numbers there.
COMPILED: dict[Function, int] = {np.add: 0, np.subtract: 1, np.multiply: 2}
#: Their numbers where the operands change places.
SWAPPED = {0: 0, 1: 3, 2: 2}
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


@compiled
def _clamp_row(a: Array, b: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Apply `function` to one row, then clamp. The caller guarantees: `a`, `b` and `out` have the same size."""
    if function == 0:
        for i in range(out.size):
            out[i] = clamp_std(a[i] + b[i], low, high)
    elif function == 1:
        for i in range(out.size):
            out[i] = clamp_std(a[i] - b[i], low, high)
    elif function == 2:
        for i in range(out.size):
            out[i] = clamp_std(a[i] * b[i], low, high)
    else:
        for i in range(out.size):
            out[i] = clamp_std(b[i] - a[i], low, high)


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


def eval_plain(function: Function, a: Array, b: Array) -> Array:
    """Evaluate without rounding, except the function's own."""
    return np.asarray(function(a, b))
