"""Operators that only move elements: the evals that their kernel files share.

They copy bits, so they are the same for every element type, and nothing is rounded anywhere. Results are contiguous;
a mere change of shape is a view.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Prepared, Shape


def contiguous(x: Array) -> Array:
    """`x`, copied unless its elements already lie in order."""
    return np.asarray(x, order="C")


def prepare_view(shape: Shape) -> Prepared:
    """The operator whose output is its first input in another shape."""
    return Prepared((shape,), shape, eval_view)


def eval_view(shape: Shape, x: Array, *_: Array | None) -> Array:
    """Return the elements unchanged and in order. Source: a memcpy in all these kernels."""
    return x.reshape(shape)
