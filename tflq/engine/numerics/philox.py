"""The random numbers of TensorFlow's kernels: Philox 4x32 in ten rounds, and the distributions derived from its words.

A generator is a key of 64 bits and a counter of 128; counter n gives four words of 32 bits, independent of all others,
so blocks are computed for whole ranges of counters at once.

Source: XLA, tsl/lib/random/philox_random.h PhiloxRandom; random_distributions_utils.h Uint32ToFloat, Uint64ToDouble,
BoxMullerFloat. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.libm import cosf, logf, sinf
from tflq.typing import Array

Words = NDArray[np.uint32]

WORDS = 4  # of one counter
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_COUNTERS = 1 << 128


def blocks(seed: int, seed_2: int, first: int, count: int) -> Words:
    """Return the words of `count` counters from number `first` on, shape (count, 4).

    The key is the first seed; the second is the upper half of the counter. Both count modulo 2**64.
    """
    start = (((seed_2 % (1 << 64)) << 64) + first) % _COUNTERS
    low = np.uint64(start % (1 << 64)) + np.arange(count, dtype=np.uint64)  # wraps modulo 2**64
    carried = low < np.uint64(start % (1 << 64))
    high = np.uint64(start >> 64) + carried.astype(np.uint64)
    return rounds(seed % (1 << 64), np.stack([low & _LOW, low >> _HALF, high & _LOW, high >> _HALF], axis=-1))


def rounds(key: int, counters: NDArray[np.uint64]) -> Words:
    """Apply ten rounds to counters of shape (n, 4), words of 32 bits. All arithmetic wraps modulo 2**32."""
    c0, c1, c2, c3 = np.moveaxis(counters, -1, 0)
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(_ROUNDS):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (second >> _HALF) ^ c1 ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _HALF) ^ c3 ^ np.uint64(keys[1]),
            first & _LOW,
        )
        keys = [(k + step) & 0xFFFFFFFF for k, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def unit_floats(words: Words) -> NDArray[np.float32]:
    """Return uniform numbers in [0, 1): the low 23 bits of each word. Exact."""
    ones = (words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return ones.view(np.float32) - np.float32(1)


def unit_doubles(words: Words) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1): 52 bits of each pair (..., 2) of words, the first one the upper. Exact."""
    upper, lower = words[..., 0].astype(np.uint64), words[..., 1].astype(np.uint64)
    ones = ((upper & np.uint64(0xFFFFF)) << _HALF) | lower | np.uint64(1023 << 52)
    doubles: Array = ones.view(np.float64) - 1.0
    return doubles


def normal_floats(words: Words) -> NDArray[np.float32]:
    """Return standard normal numbers, by Box and Muller: each pair (..., 2) of words gives a pair of floats.

    float32, with the host's logf, sinf and cosf; the angle is a float64 product that is rounded once.
    """
    units = unit_floats(words)
    radius = np.sqrt(np.float32(-2) * logf(np.maximum(units[..., 0], np.float32(1e-7))))
    angle = (np.float64(2 * math.pi) * units[..., 1]).astype(np.float32)
    return np.stack([sinf(angle) * radius, cosf(angle) * radius], axis=-1)
