"""SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN: fold the rows that share an id.

| operand      | SEGMENT_SUM         | UNSORTED_SEGMENT_         | types          |
|--------------|---------------------|---------------------------|----------------|
| x            | N, row...           | ids..., row...            | float32, int32 |
| ids          | N                   | the first dimensions of x | int32          |
| num_segments |                     | one number                | int32          |
| y            | last id + 1, row... | num_segments, row...      | as x           |

SEGMENT_SUM: ids begin at 0 and rise by 0 or 1. BUILTIN_REF lacks it: the kernel is that of the full resolver.
UNSORTED_SEGMENT_: rows with a negative id are skipped. Segments without rows are 0, 1, the lowest or the highest finite
number. int32 wraps; a NaN never wins.
Source: LiteRT 2.3, segment_sum.cc; reference_ops::SegmentSum; unsorted_segment.cc EvalSum, EvalProd, EvalMax, EvalMin;
reference_ops::UnsortedSegmentRef.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from tflq.engine.kernels.families.accumulation import add, keep_larger, keep_smaller, multiply
from tflq.engine.kernels.families.reduction import highest, lowest
from tflq.engine.kernels.families.segments import Segmented, fold_rows, unsorted_kernels
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import integers, require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse ids that jump or fall."""
    x, ids = node.input(0), node.input(1)
    require_rank(node, ids, 1)
    node.check(len(x.shape) >= 1, "number of dimensions", x, expected="at least 1", got=0)
    node.check(ids.shape[0] == x.shape[0], "size", ids, expected=x.shape[0], got=ids.shape[0])
    values = (-1, *integers(node, 1))
    steps = {b - a for a, b in pairwise(values)}
    node.check(values[:2] in ((-1,), (-1, 0)) and steps <= {0, 1}, "ids", ids, expected="from 0 on, by 0 or 1")
    shape = (values[-1] + 1, *x.shape[1:])
    return Prepared((shape,), Segmented(node.op, add, 0, shape), evaluate)


def evaluate(data: Segmented, x: Array, ids: Array) -> Array:
    """Source: SegmentSum. Rounding: float32 sums in order of the rows. Overflow: int32 wraps."""
    return fold_rows(data, x.reshape(len(ids), prod(x.shape[1:])), ids)


KERNELS = (
    *tuple(
        Kernel("SEGMENT_SUM", f"{t} int32 -> {t}", prepare, (1, 1), shape_operands=(1,)) for t in ("float32", "int32")
    ),
    *unsorted_kernels("UNSORTED_SEGMENT_SUM", add, lambda dtype: dtype.type(0)),
    *unsorted_kernels("UNSORTED_SEGMENT_PROD", multiply, lambda dtype: dtype.type(1)),
    *unsorted_kernels("UNSORTED_SEGMENT_MAX", keep_larger, lowest),
    *unsorted_kernels("UNSORTED_SEGMENT_MIN", keep_smaller, highest),
)
