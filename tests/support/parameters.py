"""Random quantization parameters, shapes that broadcast, and floats that are special."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.single_op import T

#: Pairs of shapes that broadcast: equal, scalars, both ways, high rank, empty.
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3, 5), (2, 3, 5)),
    ((2, 3, 5), (5,)),
    ((1, 3, 1), (2, 1, 4)),
    ((), (4,)),
    ((7,), (1,)),
    ((), ()),
    ((2, 1, 2, 1, 2), (1, 2, 1, 2, 1)),
    ((0, 3), (3,)),
)

SPECIAL = np.array([0, -0.0, np.nan, np.inf, -np.inf, 6, -1, 1, 1e-40], np.float32)

CODES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (0, 0),
    "int32": (0, 0),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
}

#: Types of numbers and bool, floats first.
NUMBERS = (
    "float16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
)


def scale(rng: np.random.Generator, low: float = -8, high: float = -2) -> float:
    """A random float32 scale between powers of two."""
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def zero_point(rng: np.random.Generator, type_: str) -> int:
    """A random zero point of a type; 0 for 16 bits and more."""
    low, high = CODES[type_]
    return int(rng.integers(low, high + 1))


def quantized(rng: np.random.Generator, type_: str, shape: Any, low: float = -8, high: float = -2) -> T:
    """A tensor with random per-tensor quantization."""
    return T(type_, shape, scale(rng, low, high), zero_point(rng, type_))


def floats(rng: np.random.Generator, shape: Any, limit: float = 8) -> np.ndarray[Any, Any]:
    """Random float32 values, the special ones among them where there is room."""
    values = rng.uniform(-limit, limit, shape).astype(np.float32)
    if values.size > len(SPECIAL):
        values.flat[: len(SPECIAL)] = SPECIAL
    return values
