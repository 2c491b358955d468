"""StableHLO's operators of two inputs of one shape and type: what their kernel files share.

Source: LiteRT 2.3, stablehlo_elementwise.cc ElementwisePrepare; stablehlo_elementwise.h ElementwiseEval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

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


def kernels(op: str, function: Callable[[Array, Array], Array], types: tuple[str, ...]) -> tuple[Kernel, ...]:
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
