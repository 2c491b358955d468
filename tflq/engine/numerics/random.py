"""Hashes and random numbers of the runtimes' kernels.

FarmHash's Fingerprint64, for many keys of equal length at once. All arithmetic wraps modulo 2**64.

Source: FarmHash farmhash.cc, farmhashna::Hash64.

The random numbers of TensorFlow's kernels: Philox 4x32 in ten rounds, and the distributions derived from its words.

A generator is a key of 64 bits and a counter of 128; counter n gives four words of 32 bits, independent of all others,
so blocks are computed for whole ranges of counters at once.

Source: XLA, tsl/lib/random/philox_random.h PhiloxRandom; random_distributions_utils.h Uint32ToFloat, Uint64ToDouble,
BoxMullerFloat. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

Threefry 2x32 in twenty rounds: two words of every counter, for a key of two words.

Source: LiteRT 2.3, rng_util.cc Threefry2x32. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.libm import cosf, logf, sinf
from tflq.typing import Array

Hashes = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Pair = tuple[Hashes, Hashes]

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_SEED = 81


def fingerprint64(keys: Bytes) -> Hashes:
    """Return the fingerprints of `keys`, one key a row."""
    length = keys.shape[1]
    with np.errstate(over="ignore"):
        if length <= 16:
            return _up_to_16(keys, length)
        if length <= 32:
            return _up_to_32(keys, length)
        return _up_to_64(keys, length) if length <= 64 else _longer(keys, length)


def _words(keys: Bytes, place: int, size: int = 8) -> Hashes:
    """Return little-endian words at byte `place`."""
    word = np.ascontiguousarray(keys[:, place : place + size]).view(f"<u{size}")[:, 0]
    return word.astype(np.uint64)


def _rotate(x: Hashes, bits: int) -> Hashes:
    """Rotate right."""
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))


def _mix(x: Hashes) -> Hashes:
    return x ^ (x >> np.uint64(47))


def _join(u: Hashes, v: Hashes, multiplier: Hashes | np.uint64) -> Hashes:
    return _mix((v ^ _mix((u ^ v) * multiplier)) * multiplier) * multiplier


def _multiplier(length: int) -> np.uint64:
    return _K2 + np.uint64(2 * length)


def _up_to_16(keys: Bytes, length: int) -> Hashes:
    multiplier = _multiplier(length)
    if length >= 8:
        a, b = _words(keys, 0) + _K2, _words(keys, length - 8)
        return _join(_rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier, multiplier)
    if length >= 4:
        first = np.uint64(length) + (_words(keys, 0, 4) << np.uint64(3))
        return _join(first, _words(keys, length - 4, 4), multiplier)
    if length == 0:
        return np.full(len(keys), _K2)
    a, b, c = (_words(keys, place, 1) for place in (0, length >> 1, length - 1))
    y, z = a + (b << np.uint64(8)), np.uint64(length) + (c << np.uint64(2))
    return _mix((y * _K2) ^ (z * _K0)) * _K2


def _up_to_32(keys: Bytes, length: int) -> Hashes:
    multiplier = _multiplier(length)
    a, b = _words(keys, 0) * _K1, _words(keys, 8)
    c, d = _words(keys, length - 8) * multiplier, _words(keys, length - 16) * _K2
    return _join(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier)


def _up_to_64(keys: Bytes, length: int) -> Hashes:
    multiplier = _multiplier(length)
    a, b = _words(keys, 0) * _K2, _words(keys, 8)
    c, d = _words(keys, length - 8) * multiplier, _words(keys, length - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _join(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e, f = _words(keys, 16) * multiplier, _words(keys, 24)
    g, h = (y + _words(keys, length - 32)) * multiplier, (z + _words(keys, length - 24)) * multiplier
    return _join(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _weak(keys: Bytes, place: int, a: Hashes, b: Hashes) -> Pair:
    """Return two hashes of 32 bytes, with seeds."""
    w, x, y, z = (_words(keys, place + 8 * i) for i in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotate(a, 44) + c


def _longer(keys: Bytes, length: int) -> Hashes:
    zero = np.zeros(len(keys), np.uint64)
    seed = np.uint64(_SEED)
    x, y = zero + seed * _K2 + _words(keys, 0), zero + seed * _K1 + np.uint64(113)
    z = _mix(y * _K2 + np.uint64(113)) * _K2
    v, w = (zero, zero), (zero, zero)
    for place in range(0, (length - 1) // 64 * 64, 64):
        x, y, z, v, w = _block(keys, place, x, y, z, v, w, _K1, np.uint64(1))
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    rest = np.uint64((length - 1) & 63)
    first = w[0] + rest
    v = (v[0] + first, v[1])
    w = (first + v[0], w[1])
    x, y, z, v, w = _block(keys, length - 64, x, y, z, v, w, multiplier, np.uint64(9))
    return _join(_join(v[0], w[0], multiplier) + _mix(y) * _K0 + z, _join(v[1], w[1], multiplier) + x, multiplier)


def _block(
    keys: Bytes,
    place: int,
    x: Hashes,
    y: Hashes,
    z: Hashes,
    v: Pair,
    w: Pair,
    multiplier: Hashes | np.uint64,
    weight: np.uint64,
) -> tuple[Hashes, Hashes, Hashes, Pair, Pair]:
    """Hash 64 bytes; x and z change places."""
    x = _rotate(x + y + v[0] + _words(keys, place + 8), 37) * multiplier
    y = _rotate(y + v[1] + _words(keys, place + 48), 42) * multiplier
    x = x ^ (w[1] * weight)
    y = y + v[0] * weight + _words(keys, place + 40)
    z = _rotate(z + w[0], 33) * multiplier
    v = _weak(keys, place, v[1] * multiplier, x + w[0])
    w = _weak(keys, place + 32, z + w[1], y + _words(keys, place + 16))
    return z, y, x, v, w


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


_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_MASK = 0xFFFFFFFF


def threefry_rounds(key: tuple[int, int], counters: Words) -> Words:
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
