"""Cutting a tensor along one dimension: what SPLIT and SPLIT_V share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from tflq.engine.kernels.families.movement import Pieces, eval_view, moving
from tflq.engine.kernels.filling import Call, fillings, in_turn
from tflq.engine.kernels.kernel import Prepared, Shape
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Cuts:
    """Which input is cut, and the places of the parts in it."""

    position: int
    parts: tuple[tuple[slice, ...], ...]


def prepare_split(shape: Shape, axis: int, sizes: tuple[int, ...], position: int) -> Prepared:
    """Cut the input at `position`, of that shape, into parts of `sizes` along `axis`."""
    ends = tuple(accumulate(sizes))
    whole = (slice(None),) * axis
    parts = tuple((*whole, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True))
    shapes = tuple((*shape[:axis], size, *shape[axis + 1 :]) for size in sizes)
    if prod(shape[:axis]) == 1 and sum(sizes) == shape[axis]:
        return Prepared(shapes, Pieces(shapes, position), eval_view)
    return Prepared(shapes, Cuts(position, parts), eval_split)


@fillings(lambda cuts, *inputs: [(x[part].shape, x.dtype) for x in (inputs[cuts.position],) for part in cuts.parts])
def eval_split(cuts: Cuts, outs: Sequence[Array], *inputs: Array) -> Call:
    """Source: reference_ops::Split."""
    x = inputs[cuts.position]
    return in_turn([moving(x[part], out) for out, part in zip(outs, cuts.parts, strict=True)])
