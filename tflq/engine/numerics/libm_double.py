"""The host's float64 functions, over arrays: those of Python's math module, which calls the C library.

NumPy's own may be vectorised and differ in the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.floating[Any]]

_LARGEST_EXPONENT = math.log(np.finfo(np.float64).max)


def exp(x: Doubles) -> Doubles:
    """Return the exponential; infinity where it overflows."""
    powers = _each(math.exp, np.minimum(x, _LARGEST_EXPONENT))
    return np.where(x > _LARGEST_EXPONENT, np.inf, powers)


def log(x: Doubles) -> Doubles:
    """Return the natural logarithm of positive numbers."""
    return _each(math.log, x)


def log1p(x: Doubles) -> Doubles:
    """Return log(1 + x) of numbers above -1."""
    return _each(math.log1p, x)


def cos(x: Doubles) -> Doubles:
    """Return the cosine of finite numbers."""
    return _each(math.cos, x)


def power(x: Doubles, exponent: float) -> Doubles:
    """Return `x` to the power of `exponent`; NaN and infinities where C gives them."""
    with np.errstate(all="ignore"):
        special = np.power(x, exponent)
    finite = np.isfinite(special) & (x > 0)
    return np.where(finite, _each(lambda v: math.pow(v, exponent), np.where(finite, x, 1.0)), special)


def _each(function: Callable[[float], float], x: Doubles) -> Doubles:
    return np.fromiter(map(function, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)
