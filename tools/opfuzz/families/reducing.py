"""Operators that remove axes: reductions, the position of an extreme, running sums, the largest few."""

from __future__ import annotations

import math
from typing import Any

from opfuzz.case import Array, Case
from opfuzz.draw import CODES, QUANTIZED, Draw
from opfuzz.one_operator import T
from tflq.model.ir import TensorType


def axes(draw: Draw, rank: int) -> list[int]:
    """Return some axes of a tensor of that rank, from either end; sometimes one of them twice, or none."""
    if rank == 0 or draw.chance(0.02):
        return []
    count = draw.int(1, rank) if draw.chance(0.3) else draw.int(1, max(1, rank - 1))
    chosen = [int(a) for a in draw.rng.permutation(rank)[:count]]
    if draw.chance(0.1):
        chosen.append(draw.pick(chosen))
    return [a - rank if draw.chance(0.3) else a for a in chosen]


def kept(shape: tuple[int, ...], gone: list[int], keep: bool) -> tuple[int, ...]:
    """Return the shape of the remaining dimensions."""
    away = {a % len(shape) for a in gone} if shape else set()
    return tuple(1 if i in away else n for i, n in enumerate(shape) if keep or i not in away)


def reduce(draw: Draw, op: str) -> Case:
    """Draw SUM, MEAN or REDUCE_*."""
    usual = draw.chance(0.95)  # for SUM int16, half of the output is not written
    (kind, _), (made,) = draw.types(
        op, lambda row: not (usual and row.op == "SUM" and row.signature.inputs[0].is_only(TensorType.INT16))
    )
    x = draw.tensor(str(kind), draw.shape(0, 5) if draw.chance(0.3) else draw.shape(3, 5))
    gone = axes(draw, len(x.shape))
    keep = draw.chance(0.5)
    shape = kept(tuple(x.shape), gone, keep)
    listed, value = draw.listed(gone)
    if len(gone) == 1 and draw.chance(0.3):  # an axis may be a scalar
        listed, value = draw.listed(gone[0])
    count = math.prod(x.shape) // max(1, math.prod(shape))
    return draw.case(
        op,
        [x, listed],
        [_output(draw, op, x, made, shape, count)],
        ("ReducerOptions", {"keep_dims": keep}),
        given=lambda t: value if t is listed else _few(draw, op, t),
    )


def _output(draw: Draw, op: str, x: T, made: str, shape: tuple[int, ...], count: int) -> T:
    if made not in QUANTIZED:
        return T(made, shape)
    if op in ("REDUCE_MAX", "REDUCE_MIN"):
        return T(made, shape, x.scale, x.zero_point)
    growth = {"SUM": math.sqrt(count), "MEAN": 1 / math.sqrt(max(count, 1))}.get(op, 1.0)
    if op == "MEAN" and draw.chance(0.4):
        return T(made, shape, x.scale, x.zero_point)
    if op == "REDUCE_PROD":
        reach = float(x.scale) * (CODES[x.type][1] - CODES[x.type][0]) / 2
        growth = min(reach, 4.0) ** min(count - 1, 20)
    return draw.tensor(made, shape, draw.near(float(x.scale) * growth))


def _few(draw: Draw, op: str, tensor: T) -> Array | None:
    if op in ("REDUCE_PROD",) and tensor.type in ("int32", "int64"):
        return draw.rng.choice([-3, -2, -1, 1, 2, 3], tuple(tensor.shape)).astype(tensor.type)
    return None


def extreme_place(draw: Draw, op: str) -> Case:
    """Draw ARG_MAX or ARG_MIN along one axis."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5)
    axis = draw.int(0, len(shape) - 1)
    made, axis_type = draw.pick(["int32", "int64"]), draw.pick(["int32", "int64"])
    at = axis - len(shape) if draw.chance(0.4) else axis
    listed, value = draw.listed(at if draw.chance(0.5) else [at], axis_type)
    name = "ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions"
    options = {"output_type": {"int32": 2, "int64": 4}[made]}
    x = draw.tensor(kind, shape)
    return draw.case(
        op,
        [x, listed],
        [T(made, kept(shape, [axis], False))],
        (name, options),
        given=lambda t: value if t is listed else None,
    )


def cumsum(draw: Draw, op: str) -> Case:
    """Draw CUMSUM along one axis."""
    (kind, _), _ = draw.types(op)
    shape = draw.shape(1, 5)
    listed, value = draw.listed(draw.int(-len(shape), len(shape) - 1))
    options: dict[str, Any] = {"exclusive": draw.chance(0.5), "reverse": draw.chance(0.5)}
    x = T(str(kind), shape)
    return draw.case(op, [x, listed], [x], ("CumsumOptions", options), given=lambda t: value if t is listed else None)


def largest(draw: Draw, op: str) -> Case:
    """Draw TOPK_V2: the k largest of the last axis, with many equal ones."""
    (kind, count), (made, place) = draw.types(op)
    shape = draw.shape(1, 4)
    x = draw.tensor(str(kind), shape)
    k = draw.int(0 if draw.chance(0.05) else min(1, shape[-1]), shape[-1])
    listed, value = draw.listed(k, str(count))
    out = (*shape[:-1], k)

    def given(tensor: T) -> Array | None:
        if tensor is listed:
            return value
        return draw.rng.integers(0, 6, shape).astype(tensor.type) if draw.chance(0.3) else None

    y = T(made, out, x.scale, x.zero_point)
    return draw.case(op, [x, listed], [y, T(place, out)], ("TopKV2Options", {}), given=given)


SPECS = {
    **dict.fromkeys(("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"), reduce),
    "ARG_MAX": extreme_place,
    "ARG_MIN": extreme_place,
    "CUMSUM": cumsum,
    "TOPK_V2": largest,
}
