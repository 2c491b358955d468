"""ARG_MAX, ARG_MIN: the index of the largest or smallest element along an axis, the first of equal ones.

| operand | shape          | types                             | quantization |
|---------|----------------|-----------------------------------|--------------|
| x       | rank 1 or more | float32, uint8, int8, int32, bool | ignored      |
| axis    | one element    | int32, int64                      |              |
| y       | x without axis | int32, int64                      |              |

Up to 2.14, floats are compared one after the other with the best so far. NaN in the first place wins, since nothing
compares better; elsewhere it is skipped.
Source: LiteRT 2.3 and TensorFlow 2.14, arg_min_max.cc; reference/arg_min_max.h ArgMinMax.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.families.extremum import AXIS, OpData, kernels
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

ARG_MAX = kernels("ARG_MAX", np.argmax, -np.inf)
ARG_MIN = kernels("ARG_MIN", np.argmin, np.inf)


def prepare_in_turn(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    (row,) = ARG_MAX if node.op == "ARG_MAX" else ARG_MIN
    return replace(row.prepare(node, arithmetic), eval=eval_in_turn)


def eval_in_turn(data: OpData, x: Array, axis: Array) -> Array:
    """Return the first of equal elements."""
    absent = np.isnan(x)
    best = data.find(np.where(absent, data.worst, x), axis=data.axis)
    return np.where(absent.take(0, data.axis), 0, best).astype(data.dtype)


KERNELS = (
    *ARG_MAX,
    *ARG_MIN,
    *valid(
        tflite(until="tflite-2.14"),
        *(
            Kernel(op, "float32 int32|int64 -> int32|int64", prepare_in_turn, (1, 3), AXIS)
            for op in ("ARG_MIN", "ARG_MAX")
        ),
    ),
)
