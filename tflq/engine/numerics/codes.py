"""Constants of quantized codes, in types that distinguish them from other integers.

Compiled loops take plain integers: a `ZeroPoint` or a `Shift` is passed on as `int(...)`, a clamp as `*clamp`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class ZeroPoint(int):
    """The code, or the sum of codes, that represents the real number 0."""

    __slots__ = ()


class ZeroPoints(NamedTuple):
    """A zero point for every channel, or one for all."""

    codes: NDArray[np.int64]


class Shift(int):
    """The number of bits by which codes are shifted before any other step."""

    __slots__ = ()


class Clamp(NamedTuple):
    """The limits of codes, both included, LSB of the tensor."""

    low: int
    high: int


class NumberClamp(NamedTuple):
    """The limits of numbers that are not codes, both included, in their own type."""

    low: Any
    high: Any
