"""CUMSUM: running sums along one dimension.

| operand | shape                  | types                 |
|---------|------------------------|-----------------------|
| x       | at least one dimension | float32, int32, int64 |
| axis    | one element            | int32                 |
| y       | as x                   | as x                  |

Options: exclusive (a sum leaves its own element out), reverse (from the back).
Source: LiteRT 2.3, cumsum.cc; optimized_ops.h CumsumImpl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, integer, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """The dimension summed along; `order` turns it around where sums run from the back."""

    axis: int
    order: tuple[slice, ...]
    exclusive: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axis, which counts from the back if negative."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    node.check(len(x.shape) >= 1, "number of dimensions", x, expected="at least 1", got=0)
    axis = axis_within(node, integer(node, 1), len(x.shape))
    step = slice(None, None, -1 if node.options["reverse"] else None)
    data = OpData(axis, (*(slice(None),) * axis, step), bool(node.options["exclusive"]))
    return Prepared((x.shape,), data, eval_cumsum)


def eval_cumsum(data: OpData, x: Array, axis: Array) -> Array:
    """Source: Eigen's scan: from 0, one addition after the other. Overflow: integers wrap."""
    terms = x[data.order]
    sums = np.add.accumulate(np.add(terms, 0, dtype=x.dtype), data.axis, dtype=x.dtype)
    if data.exclusive:
        before = (slice(None),) * data.axis
        shifted = np.zeros_like(sums)
        shifted[(*before, slice(1, None))] = sums[(*before, slice(None, -1))]
        sums = shifted
    return np.asarray(sums[data.order], order="C")


KERNELS = tuple(
    Kernel("CUMSUM", f"{t} int32 -> {t}", prepare, (1, 1), shape_operands=(1,)) for t in ("float32", "int32", "int64")
)
