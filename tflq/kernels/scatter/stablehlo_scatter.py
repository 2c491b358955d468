"""STABLEHLO_SCATTER: updates folded into an array, window by window, where indices say.

| operand | shape                                       | types                                            |
|---------|---------------------------------------------|--------------------------------------------------|
| x       | any                                         | float16, float32, float64, integers of 8 to 64 bits, bool |
| indices | batch..., with one dimension of coordinates | int32, int64                                     |
| updates | batch and window dimensions                 | as x                                             |
| y       | as x                                        | as x                                             |

Options: update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, index_vector_dim,
update_computation_subgraph_index. Of that subgraph only its operators' names are read: none replaces. What would land
outside x is left out.
Source: LiteRT 2.3, stablehlo_scatter.cc; tensor_slice_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.accumulation import Fold, add, keep_larger, keep_smaller, multiply, replace
from tflq.kernels.families.elementwise import NUMBERS
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.operands import integers_option
from tflq.numerics.arithmetic import Arithmetic

_FOLDS: dict[tuple[str, ...], Fold] = {
    (): replace,
    ("STABLEHLO_ADD",): add,
    ("STABLEHLO_MULTIPLY",): multiply,
    ("STABLEHLO_MAXIMUM",): keep_larger,
    ("STABLEHLO_MINIMUM",): keep_smaller,
}


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Which dimension means what."""

    fold: Fold
    vector: int  # the dimension of `indices` along which coordinates lie
    batch: Shape  # dimensions of updates that are not along windows
    where: tuple[int | None, ...]  # for each dimension of x, its coordinate
    along: tuple[int | None, ...]  # for each dimension of x, the dimension of updates that runs along it


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """What would read outside indices is undefined."""
    x, indices, updates = (node.input(position) for position in range(3))
    names = node.around().operators(int(node.options["update_computation_subgraph_index"]))
    node.check(
        names in _FOLDS,
        "computation",
        expected="none, or one of STABLEHLO_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM",
        got=list(names),
    )
    window, inserted, mapped = (
        integers_option(node, name)
        for name in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    rank, vector = len(x.shape), int(node.options["index_vector_dim"])
    batch = tuple(d for d in range(len(updates.shape)) if d not in window)
    kept = tuple(d for d in range(rank) if d not in inserted)
    fits = (
        0 <= vector < len(indices.shape)
        and len(batch) == len(indices.shape) - 1 == len(updates.shape) - len(window)
        and len(window) == len(kept) == rank - len(inserted)
        and len(mapped) == indices.shape[vector]
        and all(0 <= d < rank for d in mapped)
    )
    places = indices.shape[:vector] + indices.shape[vector + 1 :]
    if not fits or any(updates.shape[d] > length for d, length in zip(batch, places, strict=True)):
        raise UndefinedResultError(node.op, "dimension numbers do not fit the operands")
    data = OpData(
        fold=_FOLDS[names],
        vector=vector,
        batch=batch,
        where=tuple({d: k for k, d in enumerate(mapped)}.get(d) for d in range(rank)),
        along=tuple(dict(zip(kept, window, strict=True)).get(d) for d in range(rank)),
    )
    return Prepared((x.shape,), data, evaluate)


def evaluate(data: OpData, x: Array, indices: Array, updates: Array) -> Array:
    """Source: EvalWithTypes. Rounding: one per update, of the type, in order. Overflow: integers wrap."""
    out = np.array(x, order="C")
    vectors = np.moveaxis(indices, data.vector, -1)[tuple(slice(updates.shape[d]) for d in data.batch)]
    view = [updates.shape[d] if d in data.batch else 1 for d in range(updates.ndim)]
    places = np.zeros(updates.shape, np.intp)
    inside = np.ones(updates.shape, np.bool_)
    for size, k, d in zip(x.shape, data.where, data.along, strict=True):
        place = np.zeros((1,) * updates.ndim, np.intp)
        if k is not None:
            place = vectors[..., k].astype(np.intp).reshape(view)
        if d is not None:
            place = place + np.arange(updates.shape[d]).reshape([-1 if i == d else 1 for i in range(updates.ndim)])
        places = places * size + place
        inside &= (place >= 0) & (place < size)
    if prod(x.shape):
        data.fold(out.reshape(-1), places[inside], updates[inside])
    return out


KERNELS = tuple(Kernel("STABLEHLO_SCATTER", f"{t} int32|int64 {t} -> {t}", prepare, (1, 1)) for t in NUMBERS)
