"""DYNAMIC_UPDATE_SLICE: a tensor with one block replaced.

| operand | shape                 | types                         | quantization |
|---------|-----------------------|-------------------------------|--------------|
| x       | up to 8 dimensions    | every 8 to 64 bit type, int4  | passed by    |
| update  | same rank, no larger  | as x                          | passed by    |
| start   | (rank)                | int32, int64                  |              |
| y       | as x                  | as x                          | passed by    |

Starts are moved so that the block lies inside. A block as large as the tensor replaces it whole.
Source: LiteRT 2.3, dynamic_update_slice.cc ClampStartIndices, DynamicUpdateSlice.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX, SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require an update that fits into the tensor."""
    x, update, start = (node.input(position) for position in range(3))
    require_same_type(node, x, update, node.outputs[0])
    require_rank(node, x, 0, 8)
    rank = len(x.shape)
    node.check(start.shape == (rank,), "shape", start, expected=[rank], got=list(start.shape))
    fits = len(update.shape) == rank and all(a <= b for a, b in zip(update.shape, x.shape, strict=True))
    node.check(fits, "shape", update, expected=f"inside {list(x.shape)}", got=list(update.shape))
    furthest = np.subtract(x.shape, update.shape).astype(np.int64)
    return Prepared((x.shape,), furthest, eval_dynamic_update_slice)


def eval_dynamic_update_slice(furthest: Array, x: Array, update: Array, start: Array) -> Array:
    """Source: DynamicUpdateSlice. `furthest` is the last start that keeps the block inside."""
    out = x.copy()
    begins = np.clip(start.astype(np.int64), 0, furthest).tolist()
    block = tuple(slice(begin, begin + size) for begin, size in zip(begins, update.shape, strict=True))
    out[block] = update
    return out


_X = f"{SIZED}|int4"

KERNELS = (Kernel("DYNAMIC_UPDATE_SLICE", f"{_X} {_X} {INDEX} -> {_X}", prepare, (1, 6)),)
