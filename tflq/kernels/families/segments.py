"""Rows folded into the segments that their ids name: what SEGMENT_SUM and the UNSORTED_SEGMENT_ operators share.

Source: LiteRT 2.3, unsorted_segment.cc, segment_sum.cc; reference_ops::UnsortedSegmentRef, SegmentSum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.families.accumulation import Fold
from tflq.kernels.families.indices import check_positions
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.operands import integer
from tflq.numerics.arithmetic import Arithmetic

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
    taken = flat >= 0
    return fold_rows(data, x.reshape(ids.size, prod(data.shape[1:]))[taken], flat[taken])


def fold_rows(data: Segmented, rows: Array, ids: Array) -> Array:
    """Fold all rows into the segments that `ids` names, in order."""
    out = np.full(data.shape, data.start, rows.dtype)
    places = ids.astype(np.intp)[:, None] * rows.shape[1] + np.arange(rows.shape[1])
    data.fold(out.reshape(-1), places.reshape(-1), np.ascontiguousarray(rows).reshape(-1))
    return out
