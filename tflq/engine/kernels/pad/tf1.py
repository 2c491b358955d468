"""PAD, PADV2 of r1.15's reference kernels: below four dimensions, paddings and sizes are aligned to different ends.

Operands and checks: kernels/pad/reference.py. The loops run over four dimensions. Missing sizes are put in front,
missing paddings behind, so that the padding of the first dimension goes to the first of the four, which has one
element: the output has the right shape, but often nothing of the input in it. If more elements of the input are asked
for than there are, the result is undefined. Among the optimized kernels, only int8 runs the reference kernel.
Source: TensorFlow r1.15 lite/kernels/pad.cc Eval; reference_ops.h PadImpl.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.pad import reference
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array

RANK = 4
TYPES = ("float32", "int32", "int64", "uint8", "int8")


@dataclass(frozen=True, slots=True)
class OpData:
    """The four dimensions of the output, and where in them the source finds its input."""

    shape: Shape  # of the output
    extended: Shape  # the same in four dimensions
    inside: tuple[slice, ...]
    value: int  # LSB of output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Pad four dimensions as later releases do."""
    x = node.input(0)
    node.check(len(x.shape) <= RANK, "rank", x, expected=f"at most {RANK}", got=len(x.shape))
    right = reference.prepare(node, arithmetic)
    if len(x.shape) == RANK:
        return right
    extended = (1,) * (RANK - len(x.shape)) + right.data.shape
    pairs = (*reference.paddings(node, x), *((0, 0),) * (RANK - len(x.shape)))
    inside = tuple(
        slice(before, max(before, size - after)) for size, (before, after) in zip(extended, pairs, strict=True)
    )
    if np.broadcast_to(np.False_, extended)[inside].size > prod(x.shape):
        raise UndefinedResultError("PadImpl", f"{list(x.shape)} padded to {list(right.data.shape)} reads beyond it")
    return Prepared(right.shapes, OpData(right.data.shape, extended, inside, right.data.value), evaluate)


def evaluate(data: OpData, x: Array, paddings: Array, value: Array | None = None) -> Array:
    """Source: reference_ops::PadImpl. Input elements are taken in their order. Rounding, overflow: none."""
    out = np.full(data.extended, data.value if value is None else value.reshape(()), x.dtype)
    place = out[data.inside]
    place[...] = x.reshape(-1)[: place.size].reshape(place.shape)
    return out.reshape(data.shape)


def rows(op: str, types: tuple[str, ...]) -> tuple[Kernel, ...]:
    """Return the rows of one of the two operators."""
    signatures = (f"{t} int32|int64 -> {t}" if op == "PAD" else f"{t} int32|int64 {t}? -> {t}" for t in types)
    return tuple(Kernel(op, signature, prepare, (1, 2), shape_operands=(1,)) for signature in signatures)


KERNELS = (
    *valid(tf1("ref"), *rows("PAD", TYPES), *rows("PADV2", TYPES)),
    *valid(tf1("opt"), *rows("PAD", ("int8",)), *rows("PADV2", ("int8",))),
)
