"""REDUCE_ALL, REDUCE_ANY: y is true if every x, or any x, over the axes is.

| operand | shape                | types |
|---------|----------------------|-------|
| x       | any                  | bool  |
| axes    | any                  | int32 |
| y       | x without, or with 1 | bool  |

Options: keep_dims.
Source: LiteRT 2.3, reduce.cc PrepareAllOrAny, EvalGeneric.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.reduction import AXES, Reduced, reduced_axes
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare_all(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axes."""
    reduced = reduced_axes(node)
    return Prepared((reduced.shape,), reduced, eval_all)


def eval_all(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Over no elements the neutral value."""
    return np.asarray(np.logical_and.reduce(reduced.rows(x), axis=1)).reshape(reduced.shape)


def prepare_any(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axes."""
    reduced = reduced_axes(node)
    return Prepared((reduced.shape,), reduced, eval_any)


def eval_any(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Over no elements the neutral value."""
    return np.asarray(np.logical_or.reduce(reduced.rows(x), axis=1)).reshape(reduced.shape)


KERNELS = (
    Kernel("REDUCE_ALL", "bool int32 -> bool", prepare_all, (1, 1), AXES),
    Kernel("REDUCE_ANY", "bool int32 -> bool", prepare_any, (1, 1), AXES),
)
