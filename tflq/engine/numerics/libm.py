"""The host's float32 mathematical functions, over arrays.

TFLite's wheels import expf, tanhf and their kin from the C library of the machine they run on, so the last bit of a
result belongs to that machine and not to the runtime. Calling the same library gives the same bits ("exact on the same
libm"). If no library can be loaded, the float64 function is rounded to float32. That is correctly rounded in all but a
few cases in a thousand million, yet it may differ by 1 ULP from a library that is not.

Long arrays go through compiled loops, which call the library too. Compiled code may be configured to use another vector
library, so each loop is compared with the library once, on 512 points, before it is used.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.engine.jit.compiled import Compiled, compiled, compiling_is_off
from tflq.engine.jit.pieces import in_pieces

Floats = NDArray[np.float32]

#: Number of elements below which ctypes costs less than compiling a loop.
_SHORT = 1024

_LIBRARIES = {"win32": ("ucrtbase", "msvcrt"), "darwin": ("libSystem.dylib", "/usr/lib/libSystem.B.dylib")}


@cache
def c_library() -> ctypes.CDLL | None:
    """Return the C library that holds the mathematical functions, or None."""
    for name in _LIBRARIES.get(sys.platform, ("libm.so.6", "libm.so", None)):
        try:
            loaded = ctypes.CDLL(name)
            loaded.expf  # noqa: B018  (raises where the library lacks it)
        except (OSError, AttributeError, TypeError):
            continue
        return loaded
    return None


class FloatFunction:
    """One float32 function of the C library: its name there, its compiled loop, its float64 form."""

    def __init__(self, name: str, loop: Compiled[..., None], wide: Callable[..., float], arguments: int = 1) -> None:
        self.name, self.loop, self.wide, self.arguments = name, loop, wide, arguments
        self._asked = 0  # elements so far, of all callers

    def __call__(self, *operands: ArrayLike) -> Floats:
        """Compute the function of float32 `operands`, broadcast against each other."""
        arrays = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in operands))
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        return self._over(flat).reshape(arrays[0].shape)

    def into(self, x: Floats, out: Floats) -> Callable[[], object]:
        """Bind a call that fills `out` with the function of `x`, both 1-D and of one size, any number of times."""
        if self.is_compiled_alike:
            return self.loop.bound(x, out)
        return lambda: np.copyto(out, self._one_by_one([x]))

    @cached_property
    def is_from_library(self) -> bool:
        """True if the host's library is called, rather than the float64 form."""
        return self._native is not None

    def _over(self, flat: list[Floats]) -> Floats:
        self._asked += flat[0].size
        if self._asked <= _SHORT or not self.is_compiled_alike:
            return self._one_by_one(flat)
        out = np.empty_like(flat[0])
        self.loop(*flat, out)
        return out

    def _one_by_one(self, flat: list[Floats]) -> Floats:
        function = self._native or self._widen
        with np.errstate(over="ignore"):
            return np.fromiter(map(function, *(x.tolist() for x in flat)), np.float32, flat[0].size)

    def _widen(self, *operands: float) -> float:
        try:
            return self.wide(*operands)
        except OverflowError:
            return math.inf if self.name != "powf" or operands[0] >= 0 or operands[1] % 2 == 0 else -math.inf
        except ValueError:  # where C gives NaN, or minus infinity for the logarithm of 0
            return -math.inf if self.name == "logf" and operands[0] == 0 else math.nan

    @cached_property
    def _native(self) -> Any:
        function = getattr(c_library(), self.name, None)
        if function is not None:
            function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * self.arguments
        return function

    @cached_property
    def is_compiled_alike(self) -> bool:
        """True if compiled code gives the library's bits, which is tried once."""
        if compiling_is_off():
            return False
        points = np.random.default_rng(0).uniform(-8, 8, (self.arguments, 512)).astype(np.float32)
        flat, out = list(np.abs(points) if self.name in ("logf", "powf") else points), np.empty(512, np.float32)
        self.loop(*flat, out)
        return bool((out == self._one_by_one(flat)).all())


class Composed:
    """A float32 function composed of functions of the C library: over arrays, and as one compiled loop."""

    def __init__(self, function: Callable[[Floats], Floats], loop: Compiled[..., None], *calls: FloatFunction) -> None:
        self._function, self._loop, self._calls = function, loop, calls

    def __call__(self, x: Floats) -> Floats:
        """Compute the function of `x`, of any shape."""
        return self._function(x)

    def into(self, x: Floats, out: Floats) -> Callable[[], object]:
        """Bind a call; see FloatFunction.into."""
        if all(function.is_compiled_alike for function in self._calls):
            return self._loop.bound(x, out)
        return lambda: np.copyto(out, self._function(x))


@in_pieces(16, x="r", out="r")
@compiled
def _exp_into(x: Floats, out: Floats) -> None:
    """Compute out = exp(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.exp(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _expm1_into(x: Floats, out: Floats) -> None:
    """Compute out = expm1(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.expm1(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _log_into(x: Floats, out: Floats) -> None:
    """Compute out = log(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.log(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _tanh_into(x: Floats, out: Floats) -> None:
    """Compute out = tanh(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.tanh(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _sin_into(x: Floats, out: Floats) -> None:
    """Compute out = sin(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.sin(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _cos_into(x: Floats, out: Floats) -> None:
    """Compute out = cos(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.cos(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _erf_into(x: Floats, out: Floats) -> None:
    """Compute out = erf(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.erf(x[i])


@in_pieces(16, x="r", out="r")
@compiled
def _erfc_into(x: Floats, out: Floats) -> None:
    """Compute out = erfc(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.erfc(x[i])


@in_pieces(50, x="r", y="r", out="r")
@compiled
def _pow_into(x: Floats, y: Floats, out: Floats) -> None:
    """Compute out = x to the power of y.

    The caller guarantees: `x`, `y` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.pow(x[i], y[i])


@in_pieces(16, x="r", y="r", out="r")
@compiled
def _atan2_into(y: Floats, x: Floats, out: Floats) -> None:
    """Compute out = atan2(y, x).

    The caller guarantees: `x`, `y` and `out` have the same size.
    """
    for i in range(y.size):
        out[i] = math.atan2(y[i], x[i])


@in_pieces(16, x="r", y="r", out="r")
@compiled
def _hypot_into(x: Floats, y: Floats, out: Floats) -> None:
    """Compute out = hypot(x, y).

    The caller guarantees: `x`, `y` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = math.hypot(x[i], y[i])


expf = FloatFunction("expf", _exp_into, math.exp)
expm1f = FloatFunction("expm1f", _expm1_into, math.expm1)
logf = FloatFunction("logf", _log_into, math.log)
tanhf = FloatFunction("tanhf", _tanh_into, math.tanh)
sinf = FloatFunction("sinf", _sin_into, math.sin)
cosf = FloatFunction("cosf", _cos_into, math.cos)
erff = FloatFunction("erff", _erf_into, math.erf)
erfcf = FloatFunction("erfcf", _erfc_into, math.erfc)
powf = FloatFunction("powf", _pow_into, math.pow, arguments=2)
atan2f = FloatFunction("atan2f", _atan2_into, math.atan2, arguments=2)
hypotf = FloatFunction("hypotf", _hypot_into, math.hypot, arguments=2)
