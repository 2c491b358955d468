"""Places of differing elements, in words: statements true of all of them, and of fewer than all elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The greatest number of channels that are listed by name.
_NAMED = 8


def places(unequal: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the common places of all true elements of a mask (channels last; rank 4 is N, H, W, C)."""
    return tuple(_places(unequal)) if unequal.any() and unequal.ndim else ()


def _places(unequal: NDArray[np.bool_]) -> Iterator[str]:
    channels = unequal.shape[-1]
    hit = np.flatnonzero(unequal.reshape(-1, channels).any(axis=0))
    if len(hit) < channels:
        names = f" {', '.join(map(str, hit))}" if len(hit) <= _NAMED else ""
        yield f"in {len(hit)} of {channels} channels{':' if names else ''}{names}"
    for block in (16, 8):
        tail = channels - channels % block
        if 0 < tail < channels and hit[0] >= tail:
            yield f"only in the channels beyond the last whole block of {block}"
    if unequal.ndim == 4 and min(unequal.shape[1:3]) > 2:
        inner: Any = unequal[:, 1:-1, 1:-1].any()
        if not inner:
            yield "only at the border of the image"
