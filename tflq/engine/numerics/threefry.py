"""Threefry 2x32 in twenty rounds: two words of every counter, for a key of two words.

Source: LiteRT 2.3, rng_util.cc Threefry2x32. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_MASK = 0xFFFFFFFF


def rounds(key: tuple[int, int], counters: Words) -> Words:
    """Return the words of counters (n, 2). All arithmetic wraps modulo 2**32."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    a, b = counters[:, 0] + np.uint32(keys[0]), counters[:, 1] + np.uint32(keys[1])
    for step in range(1, 6):
        for distance in _ROTATIONS[(step - 1) % 2]:
            a = a + b
            b = (b << np.uint32(distance)) | (b >> np.uint32(32 - distance))
            b = b ^ a
        a = a + np.uint32(keys[step % 3])
        b = b + np.uint32((keys[(step + 1) % 3] + step) & _MASK)
    return np.stack([a, b], axis=-1)
