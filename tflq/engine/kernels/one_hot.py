"""ONE_HOT: one of two values, by whether a position is the index.

| operand | shape                          | types                                    |
|---------|--------------------------------|------------------------------------------|
| indices | any                            | int32, int64                             |
| depth   | one element                    | int32                                    |
| on, off | one element                    | float32, int32, int64, int8, uint8, bool |
| y       | indices' with depth at the     | as on                                    |
|         | axis                           |                                          |

Options: axis (-1: behind all others). Indices outside [0, depth) give `off` everywhere; int64 ones wrap to 32 bits
first.
Source: LiteRT 2.3, one_hot.cc OneHotComputeImpl.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integer, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The output's shape, and the number of elements before and in the new dimension, and behind it."""

    shape: Shape
    blocks: tuple[int, int, int]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the new dimension's place and size."""
    indices, on, off = node.input(0), node.input(2), node.input(3)
    require_same_type(node, on, off, node.outputs[0])
    for operand in (on, off):
        node.check(np.prod(operand.shape) == 1, "number of elements", operand, expected=1, got=list(operand.shape))
    depth, rank = integer(node, 1), len(indices.shape)
    require_size(node, node.input(1), (depth,))
    axis = int(node.options["axis"])
    axis = rank if axis == -1 else axis
    node.check(0 <= axis <= rank, "axis", expected=f"-1 to {rank}", got=axis)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    blocks = prod(indices.shape[:axis]), depth, prod(indices.shape[axis:])
    return Prepared((shape,), OpData(shape, blocks), eval_one_hot)


@filling(lambda data, indices, depth, on, off: (data.shape, on.dtype))
def eval_one_hot(data: OpData, out: Array, indices: Array, depth: Array, on: Array, off: Array) -> Call:
    """Source: OneHotComputeImpl."""
    outer, _, inner = data.blocks
    places = np.asarray(indices, order="C").reshape(outer, inner)
    return _mark.bound(places, on.reshape(-1), off.reshape(-1), out.reshape(data.blocks))


@writes("out")
@in_pieces(lambda places, on, off, out: out.size, places="o", out="o")
@compiled
def _mark(places: Array, on: Array, off: Array, out: Array) -> None:
    """Compute out[o, d, i] = on where places[o, i], as int32, is d, else off.

    Prepare guarantees: `places` is (outer, inner), `out` (outer, depth, inner); `on` and `off` have one element.
    """
    yes, no = on[0], off[0]
    for o in range(out.shape[0]):
        for d in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[o, d, i] = yes if np.int32(places[o, i]) == d else no


_X = "float32|int32|int64|int8|uint8|bool"

KERNELS = (Kernel("ONE_HOT", f"{INDEX} int32 {_X} {_X} -> {_X}", prepare, (1, 1), shape_operands=(1,)),)
