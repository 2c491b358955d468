"""STABLEHLO_GATHER: slices of one size, cut at the indices.

| operand | shape                                       | types                     |
|---------|---------------------------------------------|---------------------------|
| x       | any                                         | all of 8, 16, 32, 64 bits |
| starts  | batch..., with one dimension of coordinates | int32, int64              |
| y       | batch and slice dimensions                  | as x                      |

Options: offset_dims (dimensions of y that run along slices), collapsed_slice_dims, start_index_map, index_vector_dim,
slice_sizes. Slices that would reach beyond x are moved back inside.
Source: LiteRT 2.3, stablehlo_gather.cc; tensor_slice_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers_option, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Which dimension means what."""

    shape: Shape  # of the output
    vector: int  # the dimension of `starts` along which coordinates lie
    batch: Shape  # dimensions of y that are not along slices
    where: tuple[int | None, ...]  # for each dimension of x, its coordinate
    along: tuple[int | None, ...]  # for each dimension of x, the dimension of y that runs along it
    sizes: Shape  # of slices


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the number of y's dimensions from the file. Refuse reads outside x or starts, which are undefined."""
    x, starts, y = node.input(0), node.input(1), node.outputs[0]
    require_same_type(node, x, y)
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "slice_sizes")
    offset_dims, collapsed, mapped, sizes = (integers_option(node, name) for name in names)
    rank, vector = len(y.shape), int(node.options["index_vector_dim"])
    node.check(len(sizes) == len(x.shape), "length of slice_sizes", expected=len(x.shape), got=len(sizes))
    offsets = tuple(d for d in range(rank) if d in offset_dims)
    batch = tuple(d for d in range(rank) if d not in offset_dims)
    kept = tuple(d for d in range(len(sizes)) if d not in collapsed)
    fits = (
        0 <= vector < len(starts.shape)
        and len(offsets) == len(offset_dims) == len(kept)
        and len(batch) == len(starts.shape) - 1
        and len(mapped) == starts.shape[vector]
        and all(0 <= d < len(sizes) for d in mapped)
        and all(0 <= size <= full for size, full in zip(sizes, x.shape, strict=True))
        and all(sizes[d] > 0 for d in collapsed)
    )
    if not fits:
        raise UndefinedResultError(node.op, "dimension numbers do not fit the operands")
    lengths = dict(zip(batch, starts.shape[:vector] + starts.shape[vector + 1 :], strict=True))
    lengths.update(zip(offsets, (sizes[d] for d in kept), strict=True))
    data = OpData(
        shape=tuple(lengths[d] for d in range(rank)),
        vector=vector,
        batch=batch,
        where=tuple({d: k for k, d in enumerate(mapped)}.get(d) for d in range(len(sizes))),
        along=tuple(dict(zip(kept, offsets, strict=True)).get(d) for d in range(len(sizes))),
        sizes=sizes,
    )
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: OpData, x: Array, starts: Array) -> Array:
    """Source: EvalWithTypes, ClipStartingIndex. Nothing is rounded."""
    vectors = np.moveaxis(starts, data.vector, -1)
    view = [1] * len(data.shape)
    for dimension, length in zip(data.batch, vectors.shape[:-1], strict=True):
        view[dimension] = length
    coordinates = []
    for full, size, k, d in zip(x.shape, data.sizes, data.where, data.along, strict=True):
        place = np.zeros((1,) * len(view), np.intp)
        if k is not None:
            place = np.clip(vectors[..., k].astype(np.intp), 0, full - size).reshape(view)
        if d is not None:
            place = place + np.arange(size).reshape([-1 if i == d else 1 for i in range(len(view))])
        coordinates.append(place)
    return np.array(np.broadcast_to(x[tuple(coordinates)], data.shape))


KERNELS = (Kernel("STABLEHLO_GATHER", f"{SIZED} int32|int64 -> {SIZED}", prepare, (1, 1)),)
