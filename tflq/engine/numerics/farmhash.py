"""FarmHash's Fingerprint64, for many keys of equal length at once. All arithmetic wraps modulo 2**64.

Source: FarmHash farmhash.cc, farmhashna::Hash64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
