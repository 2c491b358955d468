"""REDUCE_ALL: y = whether every x over the axes.

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

from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only the axes."""
    reduced = reduced_axes(node)
    return Prepared((reduced.shape,), reduced, evaluate)


def evaluate(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Over no elements the neutral value."""
    return np.asarray(np.logical_and.reduce(reduced.rows(x), axis=1)).reshape(reduced.shape)


KERNELS = (Kernel("REDUCE_ALL", "bool int32 -> bool", prepare, (1, 1), AXES),)
