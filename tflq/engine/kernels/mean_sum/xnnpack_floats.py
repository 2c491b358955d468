"""MEAN and SUM of float32 by XNNPACK on x86-64. Operands and options: tflq/engine/kernels/mean_sum/reference.py.

The order of the sums: tflq/engine/kernels/families/xnnpack_sums.py. A mean is scaled by the reciprocal of the count.
Squares of another operator (MUL of a tensor with itself, SQUARE) are summed in one go with the multiplication.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import reduced_axes
from tflq.engine.kernels.families.xnnpack_reductions import takes_floats
from tflq.engine.kernels.families.xnnpack_sums import Sums
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.mean_sum.reference import mean_rows, sum_rows
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Merge the axes."""
    sums = Sums.of_node(node, arithmetic.xnnpack_lanes)
    shape = reduced_axes(node).shape
    return Prepared((shape,), sums, partial(evaluate, shape=shape))


def evaluate(sums: Sums, x: Array, axes: Array, *, shape: Shape) -> Array:
    """Rounding: every sum and product to float32. Subnormal numbers are zeros."""
    return sums.of(x).reshape(shape)


def _take(rows: Callable[..., tuple[Kernel, ...]]) -> tuple[Kernel, ...]:
    return tuple(replace(delegate(row, takes_floats), sums_squares=True) for row in rows(prepare, "float32"))


KERNELS = valid(xnnpack("litert-2.1", cpu="x86-64"), *_take(mean_rows), *_take(sum_rows))
