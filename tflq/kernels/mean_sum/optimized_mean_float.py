"""MEAN of float32: Eigen sums rows where the last dimension alone is reduced.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py, whose form all other shapes have.
Source: LiteRT 2.3 optimized/reduce.h Mean (MeanLastDim/Float), MeanGeneral; reduce_utils.h ResolveAxis.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import mean
from tflq.kernels.validity import opt
from tflq.numerics import eigen
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for sums of rows."""
    prepared = mean.prepare_number(node, arithmetic)
    return replace(prepared, data=reduced_axes(node), eval=eval_rows) if is_last(node) else prepared


def is_last(node: Node) -> bool:
    """Return whether axes at the end alone are reduced. Axes of size 1 do not count."""
    shape = node.input(0).shape
    axes = {int(axis) % len(shape) for axis in node.constant(1).reshape(-1)} if 0 not in shape and shape else set()
    is_reduced = [axis in axes for axis, size in enumerate(shape) if size != 1]
    return set(is_reduced) == {False, True} and is_reduced == sorted(is_reduced)


def eval_rows(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: MeanLastDim. Rounding: each sum, in Eigen's order, then the quotient."""
    rows = np.ascontiguousarray(x).reshape(-1, reduced.count)
    return np.asarray(eigen.row_sums(rows) / np.float32(reduced.count)).reshape(reduced.shape)


KERNELS = valid(opt("litert-1.0"), Kernel("MEAN", "float32 int32 -> float32", prepare, (1, 3), AXES))
