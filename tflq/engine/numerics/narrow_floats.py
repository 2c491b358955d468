"""Roundings of float32 to narrower floats, whose values stay in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.typing import Array


def in_bfloat16(x: Array) -> Array:
    """Return float32 rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.asarray(rounded.view(np.float32).reshape(np.shape(x)))


def in_float16(x: Array) -> Array:
    """Return float32 rounded to the nearest float16, ties to even."""
    return np.asarray(x).astype(np.float16).astype(np.float32)


def in_float32(x: Array) -> Array:
    """Return float32 as it is."""
    return np.asarray(x)


#: Roundings by the type's name.
NARROWED: Mapping[str, Callable[[Array], Array]] = {
    "float32": in_float32,
    "bfloat16": in_bfloat16,
    "float16": in_float16,
}
