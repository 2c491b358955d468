"""MAXIMUM, MINIMUM: y = a > b ? a : b, y = a < b ? a : b.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.binary import prepare_plain
from tflq.engine.kernels.families.xnnpack_floats import takes
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape, valid
from tflq.engine.kernels.validity import tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.flushing import subnormals_as_zeros
from tflq.typing import Array


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
class Choice:
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
            return Prepared((shape,), Choice(shape, choose, swaps, value), eval_choice)
    return Prepared((shape,), Choice(shape, choose, _is_repeated(a, b), None), eval_choice)


def _is_repeated(a: Operand, b: Operand) -> bool:
    """Return whether `a` has one element along the last dimension in which `b` has more, and they share none after."""
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    first, second = next((pair for pair in pairs if max(pair) > 1), (len(a.shape), len(b.shape)))
    return first < second and first <= 1


def eval_choice(data: Choice, a: Array, b: Array) -> Array:
    """Choose; nothing is rounded. Subnormals are zeros of their sign."""
    first, second = (subnormals_as_zeros(x) for x in ((b, a) if data.swaps else (a, b)))
    if data.limit is not None:
        first = subnormals_as_zeros(data.limit)
    return np.asarray(np.broadcast_to(data.choose(first, second), data.shape))


def eval_copy(data: tuple[Shape, int], a: Array, b: Array) -> Array:
    """Copy the operand that is not the limit."""
    shape, position = data
    return np.array(np.broadcast_to((a, b)[position], shape))


_BY_XNNPACK = tuple(
    delegate(Kernel(op, "float32 float32 -> float32", partial(prepare_choice, choose=choose), (1, 4)), takes)
    for op, choose in (("MAXIMUM", maximum_float), ("MINIMUM", minimum_float))
)

KERNELS = (
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
