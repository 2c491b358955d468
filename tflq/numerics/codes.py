"""Constants of quantized codes as values that can be told apart from other integers.

Compiled loops take plain integers: a `ZeroPoint` or a `Shift` is passed on as `int(...)`, a clamp as `*clamp`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class ZeroPoint(int):
    """The code, or the sum of codes, that stands for the real number 0."""

    __slots__ = ()


class ZeroPoints(NamedTuple):
    """A zero point for every channel, or one for all."""

    codes: NDArray[np.int64]


class Shift(int):
    """A number of bits by which codes are shifted before anything else is done to them."""

    __slots__ = ()


class Clamp(NamedTuple):
    """The limits inside which codes are held, both included, LSB of the tensor."""

    low: int
    high: int


class NumberClamp(NamedTuple):
    """The limits inside which numbers that are no codes are held, both included, in their own type."""

    low: Any
    high: Any
