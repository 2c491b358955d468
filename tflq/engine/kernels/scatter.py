"""SCATTER_ND: add slices into zeros, by coordinates. STABLEHLO_SCATTER: fold updates into an array, window by window.

| SCATTER_ND | shape                     | types                                    | quantization |
|------------|---------------------------|------------------------------------------|--------------|
| indices    | (..., n)                  | int32                                    |              |
| updates    | indices[:-1] + shape[n:]  | float32, uint8, int8, int32, int64, bool | passed by    |
| shape      | (rank of y)               | int32                                    |              |
| y          | shape                     | as updates                               | passed by    |

| STABLEHLO_SCATTER | shape                                       | types                                     |
|-------------------|---------------------------------------------|-------------------------------------------|
| x                 | any                                         | float16, float32, float64, bool, integers |
| indices           | batch..., with one dimension of coordinates | int32, int64                              |
| updates           | batch and window dimensions                 | as x                                      |
| y                 | as x                                        | as x                                      |

SCATTER_ND: a coordinate outside its dimension fails the run.
STABLEHLO_SCATTER: options update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, index_vector_dim,
update_computation_subgraph_index. Only the names of that subgraph's operators are read; none means replace. Updates
that would land outside x are dropped.
Source: LiteRT 2.3, scatter_nd.cc CheckShapes; reference_ops.h ScatterNd; stablehlo_scatter.cc; tensor_slice_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.accumulation import Fold, add, keep_larger, keep_smaller, multiply, replace
from tflq.engine.kernels.families.elementwise import NUMBERS
from tflq.engine.kernels.families.indices import coordinates
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers, integers_option, require_rank, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare_scatter_nd(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check that indices, updates and shape fit together."""
    indices, updates, operand = (node.input(position) for position in range(3))
    require_same_type(node, updates, node.outputs[0])
    require_rank(node, operand, 1)
    for tensor in (indices, updates):
        node.check(len(tensor.shape) >= 1, "number of dimensions", tensor, expected="at least 1", got=0)
    shape, depth = integers(node, 2), indices.shape[-1]
    require_size(node, operand, shape)
    node.check(depth <= len(shape), "coordinates", indices, expected=f"up to {len(shape)}", got=depth)
    expected = indices.shape[:-1] + shape[depth:]
    node.check(updates.shape == expected, "shape", updates, expected=list(expected), got=list(updates.shape))
    return Prepared((shape,), shape, eval_scatter_nd)


@filling(lambda shape, _, updates, __: (shape, updates.dtype))
def eval_scatter_nd(shape: Shape, out: Array, indices: Array, updates: Array, _: Array) -> Call:
    """Source: reference_ops::ScatterNd. Rounding: float32 sums in order of the indices. Overflow: integers wrap."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    leading, behind = shape[:depth], prod(shape[depth:])
    rows, updated = (np.asarray(x, order="C").reshape(count, -1 if x.size else 0) for x in (indices, updates))
    slices, places, is_outside = out.reshape(prod(leading), behind), np.empty(count, np.intp), np.zeros(1, np.bool_)
    locate = _locate.bound(rows, np.array(leading, np.intp), places, is_outside)
    add = _add_slices.bound(updated, places, slices)

    def call() -> None:
        locate()
        if is_outside[0]:
            is_outside[0] = False
            coordinates("scatter_nd", indices, shape)  # raises with the position
        slices.fill(0)
        add()

    return call


@writes("places", "is_outside")
@in_pieces(indices="r", places="r")
@compiled
def _locate(indices: Array, sizes: Array, places: Array, is_outside: Array) -> None:
    """Write the slice that each row of coordinates means, and whether any of these is outside.

    Eval guarantees: `sizes` has an entry for each column of `indices`, `places` one for each row.
    """
    for r in range(indices.shape[0]):
        place = 0
        for c in range(indices.shape[1]):
            index = np.int64(indices[r, c])
            if index < 0 or index >= sizes[c]:
                is_outside[0] = True
            place = place * sizes[c] + index
        places[r] = place


@writes("slices")
@in_pieces(updates="r", places="r")
@compiled
def _add_slices(updates: Array, places: Array, slices: Array) -> None:
    """Eval guarantees: `places` has an entry for each row of `updates`, and `slices` that row; both are as wide."""
    for r in range(updates.shape[0]):
        for i in range(updates.shape[1]):
            slices[places[r], i] += updates[r, i]


_X = "float32|uint8|int8|int32|int64|bool"

_FOLDS: dict[tuple[str, ...], Fold] = {
    (): replace,
    ("STABLEHLO_ADD",): add,
    ("STABLEHLO_MULTIPLY",): multiply,
    ("STABLEHLO_MAXIMUM",): keep_larger,
    ("STABLEHLO_MINIMUM",): keep_smaller,
}


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Roles of the dimensions."""

    fold: Fold
    vector: int  # the dimension of `indices` along which coordinates lie
    batch: Shape  # dimensions of updates that are not along windows
    where: tuple[int | None, ...]  # for each dimension of x, its coordinate
    along: tuple[int | None, ...]  # for each dimension of x, the dimension of updates that runs along it


def prepare_scatter(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse models that would read outside the indices."""
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
    return Prepared((x.shape,), data, eval_scatter)


def eval_scatter(data: OpData, x: Array, indices: Array, updates: Array) -> Array:
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


KERNELS = (
    Kernel("SCATTER_ND", f"int32 {_X} int32 -> {_X}", prepare_scatter_nd, (1, 1), shape_operands=(2,)),
    *tuple(Kernel("STABLEHLO_SCATTER", f"{t} int32|int64 {t} -> {t}", prepare_scatter, (1, 1)) for t in NUMBERS),
)
