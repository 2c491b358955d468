"""Where the largest or smallest element lies: what ARG_MAX and ARG_MIN share.

Source: LiteRT 2.3, arg_min_max.cc Prepare, ResizeOutput; reference/arg_min_max.h ArgMinMax, GetComparefunction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.geometry.axes import resolve_axis
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER
from tflq.typing import Array

AXIS = (1,)
#: Elements that the last axis is searched by at once.
LANES = 4


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Which axis, and which of its elements."""

    find: Callable[..., Any]  # np.argmax or np.argmin
    worst: float  # what NaN counts as
    axis: int
    dtype: np.dtype[Any]


def kernels(op: str, find: Callable[..., Any], worst: float) -> tuple[Kernel, ...]:
    """Return the kernels of `find`; floats that are NaN count as `worst`."""

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
    """Source: ArgMinMax. The first of equal elements; NaN is skipped, except in the lanes below."""
    if x.shape[data.axis] == 1:
        return np.zeros(x.shape[: data.axis] + x.shape[data.axis + 1 :], data.dtype)
    if x.dtype == np.bool_:
        x = x.view(np.uint8)  # which NumPy searches by vectors
    if x.dtype.kind != "f" or not np.isnan(x).any():
        return np.asarray(data.find(x, axis=data.axis)).astype(data.dtype)
    length, behind = x.shape[data.axis], math.prod(x.shape[data.axis + 1 :])
    if behind == 1 and length >= LANES:
        shape = x.shape[: data.axis] + x.shape[data.axis + 1 :]
        return _in_lanes(data, x.reshape(-1, length)).reshape(shape).astype(data.dtype)
    return np.asarray(_first_number(data, x, data.axis)).astype(data.dtype)


def _first_number(data: OpData, x: Array, axis: int) -> Array:
    """Return the best number's place, 0 if all are NaN. Source: GetComparefunction."""
    absent = np.isnan(x)
    best = data.find(np.where(absent, data.worst, x), axis=axis)
    is_nan = np.take_along_axis(absent, np.expand_dims(best, axis), axis).squeeze(axis)
    return np.asarray(np.where(is_nan, np.argmin(absent, axis=axis), best))


def _in_lanes(data: OpData, x: Array) -> Array:
    """Return the best places of rows (R, N), compared as four lanes and the rest.

    Source: optimized_ops.h ArgMaxVector, ArgMinVector, which both resolvers run, as SSE: an even lane
    that met nothing but NaN stays in the comparison of two lanes, and so can win over numbers.
    """
    whole = x.shape[1] // LANES * LANES
    groups = x[:, :whole].reshape(len(x), -1, LANES)
    place = _first_number(data, groups, 1)
    value = np.take_along_axis(groups, place[:, None, :], 1)[:, 0]
    pair = _better(data, value[:, 0::2], value[:, 1::2])
    winner = _better(data, pair[:, :1], pair[:, 1:])
    first = np.where(value == winner, LANES * place + np.arange(LANES), whole).min(axis=1)
    last = _first_number(data, np.concatenate([winner, x[:, whole:]], axis=1), 1)
    return np.where(last > 0, whole + last - 1, np.where(np.isnan(winner[:, 0]), 0, first))


def _better(data: OpData, a: Array, b: Array) -> Array:
    """Return `b` where it compares better, else `a`: also where one of them is NaN."""
    return np.where(b > a if data.worst < 0 else b < a, b, a)
