"""TOPK_V2: the k largest elements along the last axis and where they lie, largest first.

| operand | shape               | types                                    | quantization  |
|---------|---------------------|------------------------------------------|---------------|
| x       | rank 1 or more      | float32, uint8, int8, int16, int32, int64 | takes no part |
| k       | one element         | int32, int16                             |               |
| values  | x, last axis k      | as x                                     | takes no part |
| indices | x, last axis k      | int32, int16                             |               |

Equal elements come in the order of their indices, NaN after all numbers. Negative k counts as 0.
Source: LiteRT 2.3, topk_v2.cc ResizeOutput, TopContainer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.filling import Call, Form, fillings
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Products of the last axis and k up to which insertion is quicker than sorting.
_FEW = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """How many elements, and the type of their indices."""

    k: int
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require k within the last axis, and that axis within the range of the indices."""
    x, indices = node.input(0), node.outputs[1]
    value = node.constant(1)
    node.check(value.size == 1, "must have one element", node.input(1), got=value.size)
    node.check(len(x.shape) >= 1, "must have at least one dimension", x)
    k, last = max(0, int(value.reshape(-1)[0])), x.shape[-1]
    node.check(k <= last, "is larger than the last axis", node.input(1), expected=f"at most {last}", got=k)
    dtype = CARRIER[indices.type]
    node.check(k == 0 or last <= type_range(dtype)[1], "index type is too small", indices, got=last)
    shape = (*x.shape[:-1], k)
    return Prepared((shape, shape), OpData(k, dtype), evaluate, scratch=24 * prod(x.shape))


def _forms(data: OpData, x: Array, k: Array) -> list[Form]:
    shape = (*x.shape[:-1], data.k)
    return [(shape, x.dtype), (shape, data.dtype)]


@fillings(_forms)
def evaluate(data: OpData, outs: Sequence[Array], x: Array, k: Array) -> Call:
    """Source: TopK. No rounding."""
    if x.shape[-1] * data.k <= _FEW and x.size:
        rows = np.asarray(x, order="C").reshape(-1, x.shape[-1])
        values, indices = (out.reshape(len(rows), data.k) for out in outs)
        return _insert_rows.bound(rows, values, indices)

    def call() -> None:
        # ~x is -x - 1: it turns the order of integers around without overflow.
        turned = -x if x.dtype.kind == "f" else ~x
        order = np.argsort(turned, axis=-1, kind="stable")[..., : data.k]
        outs[0][...], outs[1][...] = np.take_along_axis(x, order, axis=-1), order

    return call


@in_pieces(lambda x, values, indices: x.size * values.shape[1], x="r", values="r", indices="r")
@compiled
def _insert_rows(x: Array, values: Array, indices: Array) -> None:
    """Insert the elements of each row one by one among the largest so far, behind those that are as large.

    Eval guarantees: `values` and `indices` are (rows, k), k at most the length of a row.
    """
    k = values.shape[1]
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            place = min(c, k)
            # Numbers go before NaN, which goes nowhere.
            while place > 0 and x[r, c] == x[r, c] and not values[r, place - 1] >= x[r, c]:
                if place < k:
                    values[r, place], indices[r, place] = values[r, place - 1], indices[r, place - 1]
                place -= 1
            if place < k:
                values[r, place], indices[r, place] = x[r, c], c


KERNELS = (
    *(
        Kernel("TOPK_V2", f"{t} int32|int16 -> {t} int32|int16", prepare, (1, 3), (1,))
        for t in ("float32", "uint8", "int8", "int16", "int32", "int64")
    ),
)
