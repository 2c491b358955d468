"""ARG_MIN, ARG_MAX of floats: one element after the other, each held against the best so far.

NaN compares better than nothing and nothing better than NaN: in the first place it wins, elsewhere it is passed over.
Operands: tflq/kernels/arg_max_min/arg_min.py. Other types do not differ.
Source: TensorFlow 2.14 reference/arg_min_max.h ArgMinMax.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.arg_max_min import arg_max, arg_min
from tflq.kernels.families.extremum import AXIS, OpData
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    (row,) = arg_max.KERNELS if node.op == "ARG_MAX" else arg_min.KERNELS
    return replace(row.prepare(node, arithmetic), eval=evaluate)


def evaluate(data: OpData, x: Array, axis: Array) -> Array:
    """The first of equal elements."""
    absent = np.isnan(x)
    best = data.find(np.where(absent, data.worst, x), axis=data.axis)
    return np.where(absent.take(0, data.axis), 0, best).astype(data.dtype)


KERNELS = valid(
    tflite(until="tflite-2.14"),
    *(Kernel(op, "float32 int32|int64 -> int32|int64", prepare, (1, 3), AXIS) for op in ("ARG_MIN", "ARG_MAX")),
)
