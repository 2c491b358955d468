"""Rows folded into the segments that their ids name: what SEGMENT_SUM and the UNSORTED_SEGMENT_ operators share.

Source: LiteRT 2.3, unsorted_segment.cc, segment_sum.cc; reference_ops::UnsortedSegmentRef, SegmentSum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.accumulation import Fold, add, keep_larger, keep_smaller, multiply
from tflq.engine.kernels.families.indices import check_positions
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integer
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER
from tflq.typing import Array

_TYPES = ("float32", "int32")


@dataclass(frozen=True, slots=True, eq=False)
class Segmented:
    """How rows become segments."""

    op: str
    fold: Fold
    start: Any  # what a segment begins with
    shape: Shape  # of the output: segments, row...


def unsorted_kernels(op: str, fold: Fold, start: Callable[[np.dtype[Any]], Any]) -> tuple[Kernel, ...]:
    """Return the kernels of a fold whose ids come in any order; segments begin with `start(dtype)`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, ids, number = (node.input(position) for position in range(3))
        prefix = x.shape[: len(ids.shape)]
        node.check(prefix == ids.shape, "shape", ids, expected=list(prefix), got=list(ids.shape))
        node.check(number.shape in ((), (1,)), "shape", number, expected="one number", got=list(number.shape))
        count = integer(node, 2)
        node.check(count >= 0, "number of segments", number, expected="at least 0", got=count)
        shape = (count, *x.shape[len(ids.shape) :])
        return Prepared((shape,), Segmented(op, fold, start(CARRIER[x.type]), shape), eval_unsorted)

    return tuple(Kernel(op, f"{t} int32 int32 -> {t}", prepare, (1, 1), shape_operands=(2,)) for t in _TYPES)


def eval_unsorted(data: Segmented, x: Array, ids: Array, _: Array) -> Array:
    """Source: UnsortedSegmentRef. Rows with a negative id are left out; an id beyond the segments stops the run."""
    flat = ids.reshape(-1)
    check_positions(data.op, np.maximum(flat, 0) if data.shape[0] else flat[flat >= 0], data.shape[0])
    rows, taken = x.reshape(ids.size, prod(data.shape[1:])), flat >= 0
    return fold_rows(data, rows, flat) if taken.all() else fold_rows(data, rows[taken], flat[taken])


def fold_rows(data: Segmented, rows: Array, ids: Array) -> Array:
    """Fold all rows into the segments that `ids` names, in order."""
    out = np.full(data.shape, data.start, rows.dtype)
    if rows.size:
        _fold(np.ascontiguousarray(rows), ids, FOLDS[data.fold], out.reshape(len(out), -1))
    return out


#: The folds that `_fold` knows, by their numbers there.
FOLDS: dict[Fold, int] = {add: 0, multiply: 1, keep_larger: 2, keep_smaller: 3}


@writes("out")
@in_pieces(rows="r", ids="r")
@compiled
def _fold(rows: Array, ids: Array, fold: Int, out: Array) -> None:
    """Fold each row into row ids[r] of `out`, as the folds of accumulation.py do.

    Eval guarantees: there is one id for each row, in [0, len(out)), and rows are as long as those of `out`.
    """
    for r in range(rows.shape[0]):
        row, segment = rows[r], out[ids[r]]
        if fold == 0:
            for i in range(row.size):
                segment[i] += row[i]
        elif fold == 1:
            for i in range(row.size):
                segment[i] *= row[i]
        elif fold == 2:
            for i in range(row.size):
                before, value = segment[i], row[i]
                segment[i] = value if before < value else before
        else:
            for i in range(row.size):
                before, value = segment[i], row[i]
                segment[i] = value if value < before else before
