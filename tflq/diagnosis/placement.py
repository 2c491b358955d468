"""The places of differing elements: only facts that hold for all of them, and not for all elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Sizes of the blocks of channels that vectorized kernels compute at once.
_BLOCKS = (16, 8)


@dataclass(frozen=True, slots=True)
class Places:
    """Facts about all differing elements of a tensor.

    `hit` are the channels with such elements out of `channels`, empty if all have some. `tails` are the sizes of blocks
    of channels after whose last whole one the elements begin. With `at_border`, all are at the border of the image.
    """

    channels: int = 0
    hit: tuple[int, ...] = ()
    tails: tuple[int, ...] = ()
    at_border: bool = False


def places(unequal: NDArray[np.bool_]) -> Places:
    """Return the places of the true elements of a mask (channels last; rank 4 is N, H, W, C)."""
    if not (unequal.any() and unequal.ndim):
        return Places()
    channels = unequal.shape[-1]
    hit = np.flatnonzero(unequal.reshape(-1, channels).any(axis=0)).tolist()
    tails = tuple(block for block in _BLOCKS if 0 < channels - channels % block <= hit[0])
    is_image = unequal.ndim == 4 and min(unequal.shape[1:3]) > 2
    at_border = is_image and not bool(unequal[:, 1:-1, 1:-1].any())
    return Places(channels, tuple(hit) if len(hit) < channels else (), tails, at_border)
