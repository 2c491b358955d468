"""The host's mathematical functions over arrays, and loops that call a function.

Functions of single elements over arrays: compiled loops that are bound to a function.

The host's float32 mathematical functions, over arrays.

TFLite's wheels import expf, tanhf and their kin from the C library of the machine they run on, so the last bit of a
result belongs to that machine and not to the runtime. Calling the same library gives the same bits ("exact on the same
libm"). If no library can be loaded, the float64 function is rounded to float32. That is correctly rounded in all but a
few cases in a thousand million, yet it may differ by 1 ULP from a library that is not.

Long arrays go through compiled loops, which call the library too. Compiled code may be configured to use another vector
library, so each loop is compared with the library once, on 512 points, before it is used.

The host's float64 functions, over arrays: those of Python's math module, which calls the C library.

NumPy's own may be vectorised and differ in the last bit.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, compiling_is_off
from tflq.engine.jit.pieces import in_pieces
from tflq.typing import Array

Floats = NDArray[np.float32]


@compiled
def of_element(x: Real) -> Real:
    """Return the function of an element; each loop is bound to its own."""
    return x


@compiled
def _of_one(x: Array, out: Array) -> None:
    """Fill `out` with the function of `x`. The caller guarantees: both have the same size."""
    for i in range(x.size):
        out[i] = of_element(x[i])


@compiled
def _of_two(x: Array, y: Array, out: Array) -> None:
    """Fill `out` with the function of `x` and `y`. The caller guarantees: all have the same size."""
    for i in range(x.size):
        out[i] = of_element(x[i], y[i])  # type: ignore[call-arg]  # bound to a function of two


@compiled
def _with_constants(x: Array, first: Int, second: Int, out: Array) -> None:
    """Fill `out` with the function of `x` and two constants. The caller guarantees: both have the same size."""
    for i in range(x.size):
        out[i] = of_element(x[i], first, second)  # type: ignore[call-arg]  # bound to a function of three


def over(function: Callable[..., Real], work: int) -> Compiled[..., None]:
    """Return the loop of a function of an element: (x, out), both 1-D and of one size.

    `function` is compiled or one of `math`; `work` is its time in passes through an innermost loop.
    """
    return in_pieces(work, x="r", out="r")(_of_one.bind(of_element=function))


def over_two(function: Callable[..., Real], work: int) -> Compiled[..., None]:
    """Return the loop of a function of two elements: (x, y, out); see `over`."""
    return in_pieces(work, x="r", y="r", out="r")(_of_two.bind(of_element=function))


def with_constants(function: Callable[..., Real], work: int) -> Compiled[..., None]:
    """Return the loop of a function of an element and two constants: (x, first, second, out); see `over`."""
    return in_pieces(work, x="r", out="r")(_with_constants.bind(of_element=function))


class _Calls(Protocol):
    @property
    def is_compiled_alike(self) -> bool: ...


class Elementwise:
    """A function of float32 arrays that has a compiled loop.

    `arrays` computes it with NumPy, if that is worth having: then a call compiles nothing. `calls` are the functions of
    the C library that the loop calls; if one differs in compiled code, `arrays` is taken in place of the loop.
    """

    def __init__(
        self, loop: Compiled[..., None], arrays: Callable[..., Floats] | None = None, calls: tuple[_Calls, ...] = ()
    ) -> None:
        self.loop, self._arrays, self._calls = loop, arrays, calls

    def __call__(self, x: Floats) -> Floats:
        """Compute the function of `x`, of any shape."""
        if self._arrays is not None:
            return self._arrays(x)
        out = np.empty(x.shape, np.float32)
        self.loop(np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
        return out

    def into(self, x: Floats, out: Floats) -> Callable[[], object]:
        """Bind a call that fills `out` with the function of `x`, both 1-D and of one size, any number of times."""
        if self.is_compiled_alike:
            return self.loop.bound(x, out)
        return lambda: np.copyto(out, self(x))

    @property
    def is_compiled_alike(self) -> bool:
        """True if compiled code gives the bits of the C library."""
        return all(function.is_compiled_alike for function in self._calls)


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


class FloatFunction(Elementwise):
    """A float32 function of the C library: its name there, and its float64 form, which compiled code narrows."""

    def __init__(self, name: str, wide: Callable[..., float], arguments: int = 1) -> None:
        super().__init__(over(wide, 16) if arguments == 1 else over_two(wide, 50))
        self.name, self.wide, self.arguments = name, wide, arguments
        self._asked = 0  # elements so far, of all callers

    def __call__(self, *operands: ArrayLike) -> Floats:
        """Compute the function of float32 `operands`, broadcast against each other."""
        arrays = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in operands))
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        return self._over(flat).reshape(arrays[0].shape)

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


expf = FloatFunction("expf", math.exp)
expm1f = FloatFunction("expm1f", math.expm1)
logf = FloatFunction("logf", math.log)
tanhf = FloatFunction("tanhf", math.tanh)
sinf = FloatFunction("sinf", math.sin)
cosf = FloatFunction("cosf", math.cos)
erff = FloatFunction("erff", math.erf)
erfcf = FloatFunction("erfcf", math.erfc)
powf = FloatFunction("powf", math.pow, arguments=2)
atan2f = FloatFunction("atan2f", math.atan2, arguments=2)
hypotf = FloatFunction("hypotf", math.hypot, arguments=2)


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
