"""The limits of float ADD, SUB, MUL, DIV and RELU on AArch64: what becomes of NaN, and of -0.0 at a limit of 0.

A loop holds its numbers inside the limits in one of three ways, or in several, one after the other:

- compared, as std::min and std::max are written: NaN stays, and so does -0.0;
- in vectors of four, by fmax and fmin: NaN stays, -0.0 becomes 0.0;
- as numbers, by fmaxnm and fminnm: NaN becomes the lower limit, -0.0 becomes 0.0.

Source: LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h AddElementwise, MulElementwise, SubWithActivation; reference
add.h, sub.h, mul.h, div.h ActivationFunctionWithMinMax; activations.cc. Which form a compiler chose is seen in the
packages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.binary import Prepare, both
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, run_of
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array

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
