"""MEAN as integer units compute it: one multiplier that holds the count, or a quotient and a multiplier in turn.

The multiplier is made by the arithmetic's own stage, so that a point of the grammar of requantizers can change it.
Sources of fields: LiteRT 2.3 reduce.cc (one multiplier), TFLite 2.7 integer_ops/mean.h (scaled, then divided).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.reduction import Reduced, reduced_axes
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import QUOTIENTS
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("MEAN",)
ONCE, DIVIDED_FIRST, SCALED_FIRST = STEPS = ("one multiplier", "divided, then scaled", "scaled, then divided")
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {"steps": STEPS, "quotient": tuple(QUOTIENTS)}


@dataclass(frozen=True, slots=True)
class Mean:
    """One point of the grammar of means. Fields are spelled as files of profiles spell them."""

    steps: str = ONCE
    quotient: str = "half away from zero"  # of the division by the count; not used by one multiplier


#: The reader of what a file states.
mean_of = reader(Mean, FIELDS, "a mean")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: the axes, the zero points (LSB), and the stage that scales sums or quotients."""

    reduced: Reduced
    zero_in: int
    zero_out: int
    stage: OutputStage
    clamp: Clamp
    dtype: np.dtype[Any]
    point: Mean


def mean_in_integers(row: Kernel, point: Mean) -> Kernel:
    """Return the row of MEAN that scales and divides in the point's order."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0), node.outputs[0]
        node.check(x.is_quantized and y.is_quantized and x.type in CARRIER, "has no scale", x)
        reduced, dtype = reduced_axes(node), CARRIER[y.type]
        node.check(reduced.count > 0, "has no elements to average", x)
        ratio = np.float64(x.scale) / np.float64(y.scale) / (reduced.count if point.steps == ONCE else 1)
        clamp = type_range(dtype)
        data = OpData(reduced, int(x.zero_point), int(y.zero_point), arithmetic.requantize(ratio), clamp, dtype, point)
        return Prepared((reduced.shape,), data, eval_mean)

    return replace(row, prepare=prepare, takes=None)


def eval_mean(data: OpData, x: Array, _axes: Array) -> Array:
    """Add, then scale and divide. Rounding: by the stage and the point."""
    rows = data.reduced.rows(x)
    total = rows.sum(axis=1, dtype=np.int64) - np.int64(data.zero_in) * rows.shape[1]
    divide, count = QUOTIENTS[data.point.quotient], np.int64(rows.shape[1])
    if data.point.steps == DIVIDED_FIRST:
        total = divide(total, np.full_like(total, count))
    scaled = data.stage(total.reshape(1, -1)).astype(np.int64).reshape(total.shape)
    if data.point.steps == SCALED_FIRST:
        scaled = divide(scaled, np.full_like(scaled, count))
    return np.asarray(np.clip(scaled + data.zero_out, *data.clamp).astype(data.dtype)).reshape(data.reduced.shape)
