"""ADD_N: the sum of two or more tensors.

| operand | shape           | types          |
|---------|-----------------|----------------|
| x...    | equal           | float32, int32 |
| y       | as the first x  | as x           |

Float sums are held inside the finite float32 range after every addition. More than one thread would add in another
order: one is meant.
Source: LiteRT 2.3, add_n.cc; optimized_ops::AddN.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require shapes and types that agree."""
    first, *others = (node.input(position) for position in range(len(node.inputs)))
    node.check(len(others) >= 1, "number of inputs", expected="at least 2", got=len(node.inputs))
    require_same_type(node, first, *others, node.outputs[0])
    for x in others:
        node.check(x.shape == first.shape, "shape", x, expected=list(first.shape), got=list(x.shape))
    return Prepared((first.shape,), None, evaluate)


def evaluate(_: None, first: Array, *others: Array) -> Array:
    """Source: AddNWorkerTask::Run. Rounding: float32 sums from the first on. Overflow: int32 wraps."""
    total = first
    for x in others:
        total = total + x
        if total.dtype == np.float32:
            total = _finite(total)
    return np.array(total)


def _finite(x: Array) -> Array:
    limit = np.finfo(np.float32).max
    return np.clip(x, -limit, limit)


def prepare_open(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare sums that may be infinite. Source: tflite-micro (August 2026) add_n.cc, reference/add_n.h."""
    return replace(prepare(node, arithmetic), eval=eval_open)


def eval_open(_: None, first: Array, *others: Array) -> Array:
    """Source: AddN. Rounding: float32 sums from the first on."""
    total = first
    for x in others:
        total = total + x
    return np.array(total)


KERNELS = (
    *(Kernel("ADD_N", f"{t}* -> {t}", prepare, (1, 1)) for t in ("float32", "int32")),
    *valid(micro(), Kernel("ADD_N", "float32* -> float32", prepare_open, (1, 1))),
)
