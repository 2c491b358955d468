"""Operators that only move elements: the evals that their kernel files share.

They copy bits, so they are the same for every element type, and nothing is rounded anywhere. Results are contiguous;
a mere change of shape is a view.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.filling import Call
from tflq.engine.kernels.kernel import Prepared, Shape
from tflq.typing import Array

#: Types by their number of bytes, to copy by.
_WIDE = {2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def contiguous(x: Array) -> Array:
    """Return `x`, copied unless its elements already lie in order."""
    return np.asarray(x, order="C")


def moving(x: Array, out: Array) -> Call:
    """Return the call that copies `x` into `out` of the same shape and type; a short last axis goes as one element."""
    wide = _WIDE.get(x.shape[-1] * x.itemsize) if x.ndim and x.shape == out.shape and x.size else None
    if wide is not None and not x.dtype.hasobject and x.strides[-1] == out.strides[-1] == x.itemsize:
        x, out = x.view(wide), out.view(wide)
    return partial(np.copyto, out, x)


def prepare_view(shape: Shape) -> Prepared:
    """Return the operator whose output is its first input in another shape."""
    return Prepared((shape,), Pieces((shape,)), eval_view)


@dataclass(frozen=True, slots=True)
class Pieces:
    """An input cut into outputs, one after the other as they lie in memory."""

    shapes: tuple[Shape, ...]
    position: int = 0  # of the input


def eval_view(data: Pieces, *inputs: Array | None) -> tuple[Array, ...]:
    """Return the elements unchanged and in order. Source: a memcpy in all these kernels."""
    x = inputs[data.position]
    assert x is not None
    if len(data.shapes) == 1:
        return (x.reshape(data.shapes[0]),)
    flat, outputs, start = x.reshape(-1), [], 0
    for shape in data.shapes:
        size = prod(shape)
        outputs.append(flat[start : start + size].reshape(shape))
        start += size
    return tuple(outputs)
