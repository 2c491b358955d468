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

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """How many elements, and the type of their indices."""

    k: int
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """k must not exceed the last axis, nor that axis what the indices can count."""
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


def evaluate(data: OpData, x: Array, k: Array) -> tuple[Array, Array]:
    """Source: TopK. No rounding."""
    # ~x is -x - 1: it turns the order of integers around without overflow.
    turned = -x if x.dtype.kind == "f" else ~x
    order = np.argsort(turned, axis=-1, kind="stable")[..., : data.k]
    return np.take_along_axis(x, order, axis=-1), order.astype(data.dtype)


KERNELS = (
    *(
        Kernel("TOPK_V2", f"{t} int32|int16 -> {t} int32|int16", prepare, (1, 3), (1,))
        for t in ("float32", "uint8", "int8", "int16", "int32", "int64")
    ),
)
