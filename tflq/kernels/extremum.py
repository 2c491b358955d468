"""Where the largest or smallest element lies: what ARG_MAX and ARG_MIN share.

Source: LiteRT 2.3, arg_min_max.cc Prepare, ResizeOutput; reference/arg_min_max.h ArgMinMax, GetComparefunction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.axis import resolve_axis
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

AXIS = (1,)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Which axis, and which of its elements."""

    find: Callable[..., Any]  # np.argmax or np.argmin
    worst: float  # what NaN counts as
    axis: int
    dtype: np.dtype[Any]


def kernels(op: str, find: Callable[..., Any], worst: float) -> tuple[Kernel, ...]:
    """The kernels of `find`; floats that are NaN count as `worst`, yet any number comes before them."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y, where = node.input(0), node.outputs[0], node.input(1)
        value = node.constant(1)
        node.check(value.size == 1, "must have one element", where, got=value.size)
        node.check(len(x.shape) >= 1, "must have at least one dimension", x)
        axis = resolve_axis(node, int(value.reshape(-1)[0]), len(x.shape), where)
        node.check(x.shape[axis] > 0, "axis is empty", x, got=list(x.shape))
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        return Prepared((shape,), OpData(find, worst, axis, CARRIER[y.type]), evaluate)

    types = "float32|uint8|int8|int32|bool int32|int64 -> int32|int64"
    return (Kernel(op, types, prepare, (1, 3), AXIS),)


def evaluate(data: OpData, x: Array, axis: Array) -> Array:
    """Source: ArgMinMax. The first of equal elements; the first number where NaN is met, 0 where all are NaN."""
    if x.dtype.kind != "f" or not (absent := np.isnan(x)).any():
        return np.asarray(data.find(x, axis=data.axis)).astype(data.dtype)
    best = data.find(np.where(absent, data.worst, x), axis=data.axis)
    is_nan = np.take_along_axis(absent, np.expand_dims(best, data.axis), data.axis).squeeze(data.axis)
    return np.asarray(np.where(is_nan, np.argmin(absent, axis=data.axis), best)).astype(data.dtype)
