"""RANGE: start, start + delta, ... up to limit, that one left out.

| operand | shape  | types                 |
|---------|--------|-----------------------|
| start   | scalar | float32, int32, int64 |
| limit   | scalar | as start              |
| delta   | scalar | as start              |
| y       | vector | as start              |

Source: LiteRT 2.3, range.cc GetSize, CalculateRange.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import INT32_MAX
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the length; float32 counts with one subtraction and one division in float32."""
    operands = [node.input(position) for position in range(3)]
    require_same_type(node, *operands, node.outputs[0])
    for operand in operands:
        require_rank(node, operand, 0)
    start, limit, delta = (node.constant(position)[()] for position in range(3))
    towards = bool((start >= limit and delta < 0) or (start <= limit and delta > 0))
    node.check(towards, "start, limit and delta", expected="delta towards limit", got=[start, limit, delta])
    if operands[0].type.label == "float32":
        steps = float(abs((limit - start) / delta))
        node.check(steps <= INT32_MAX, "length", expected=f"up to {INT32_MAX}", got=steps)
        length = math.ceil(steps)
    else:
        length = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    node.check(length <= INT32_MAX, "length", expected=f"up to {INT32_MAX}", got=length)
    return Prepared(((length,),), length, eval_range)


def eval_range(length: int, start: Array, limit: Array, delta: Array) -> Array:
    """Source: CalculateRange. Rounding: float32 sums one after the other, in order. Overflow: integers wrap."""
    steps = np.full(length, delta, start.dtype)
    steps[:1] = start
    return np.add.accumulate(steps, dtype=start.dtype)


KERNELS = tuple(
    Kernel("RANGE", f"{t} {t} {t} -> {t}", prepare, (1, 2), shape_operands=(0, 1, 2))
    for t in ("float32", "int32", "int64")
)
