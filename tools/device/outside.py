"""Unexpected mistakes: damage to an operator's right result, and changes of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.mistakes import CONTRACTIONS, Mistake
from device.site import Site

Array = NDArray[Any]


@dataclass(frozen=True)
class Damage:
    """A mistake that turns a right result of rank 2 or more into a wrong one."""

    name: str
    make: Callable[[Array, np.random.Generator], Array]


def _stuck_bit(codes: Array, rng: np.random.Generator) -> Array:
    bit = codes.dtype.type(1 << int(rng.integers(1, 3)))
    stuck: Array = codes | bit if rng.random() < 0.5 else codes & ~bit
    return stuck


def _noise(codes: Array, rng: np.random.Generator) -> Array:
    """Return the codes with the lowest bit flipped in one element of a hundred, at least three."""
    out = codes.copy().reshape(-1)
    hit = rng.choice(out.size, max(min(3, out.size), out.size // 100), replace=False)
    out[hit] ^= codes.dtype.type(1)
    return out.reshape(codes.shape)


def _swapped_channels(codes: Array, rng: np.random.Generator) -> Array:
    first, second = rng.choice(codes.shape[-1], 2, replace=False)
    out = codes.copy()
    out[..., [first, second]] = codes[..., [second, first]]
    return out


def _late_row(codes: Array, rng: np.random.Generator) -> Array:
    """Return the codes shifted by three places."""
    return np.roll(codes.reshape(-1), 3).reshape(codes.shape)


def _dead_lane(codes: Array, rng: np.random.Generator) -> Array:
    """Return the codes with every third element left at old memory contents."""
    out = codes.copy().reshape(-1)
    out[1::3] = 85
    return out.reshape(codes.shape)


def _coarse(codes: Array, rng: np.random.Generator) -> Array:
    """Return codes in steps of three."""
    return (codes // 3 * 3).astype(codes.dtype)


def _gain(codes: Array, rng: np.random.Generator) -> Array:
    """Return codes 3 % too large, rounded to even."""
    info = np.iinfo(codes.dtype)
    return np.clip(np.rint(codes.astype(np.float64) * 1.03), info.min, info.max).astype(codes.dtype)


def _every_other_off(codes: Array, rng: np.random.Generator) -> Array:
    """Return the codes with elements at odd places one too large, all others two too small."""
    info = np.iinfo(codes.dtype)
    flat = codes.reshape(-1).astype(np.int64)
    flat[1::2] += 1
    flat[::2] -= 2
    return np.clip(flat, info.min, info.max).astype(codes.dtype).reshape(codes.shape)


#: All damages.
DAMAGES: tuple[Damage, ...] = (
    Damage("a bit of the output stuck", _stuck_bit),
    Damage("noise in the lowest bit", _noise),
    Damage("two channels swapped", _swapped_channels),
    Damage("elements three places late", _late_row),
    Damage("every third element never written", _dead_lane),
    Damage("codes in steps of three", _coarse),
    Damage("codes 3 % too large", _gain),
    Damage("alternating offsets", _every_other_off),
)


def _contracts(site: Site) -> bool:
    return site.op in CONTRACTIONS


def _has_rows(site: Site) -> bool:
    return _contracts(site) and site.input(1).shape[1] > 1 and site.op != "FULLY_CONNECTED"


#: Mistakes that are changes of the device.
UNEXPECTED: tuple[Mistake, ...] = (
    Mistake("multiplier too large by 1/1000", {"gain": 1.001}, _contracts),
    Mistake("the filter's last row left out", {"drops_last_row": True}, _has_rows),
    Mistake("accumulator of 14 bits saturates at each tap", {"bits": 14, "saturates": "at each tap"}, _contracts),
)
