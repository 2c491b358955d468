"""`@compiled`: plain Python that numba compiles at its first call, and not before.

Importing numba and llvmlite costs more than reading a model, so nothing here imports them until a compiled
function is really called. With NUMBA_DISABLE_JIT=1 numba is never imported at all: the same source runs as Python,
slow and open to any debugger. Machine code is cached on disk, under a name that holds a digest of the function and of
everything it calls, so that a change to a callee can never leave stale code behind.

A compiled function may call other compiled functions of any module by their global names.
"""

from __future__ import annotations

import functools
import hashlib
import os
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

#: A scalar of compiled code: int64 there, an int or a NumPy integer where the source runs as Python.
Int: TypeAlias = Any
#: The same for float64.
Real: TypeAlias = Any
#: An array, whatever its type.
Array: TypeAlias = NDArray[Any]


class Compiled(Generic[P, R]):
    """A function with two bodies of one source: `python`, and the machine code made of it on demand."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self._call: Callable[..., R] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it, compiling first if need be."""
        return (self._call or self.resolve())(*args, **kwargs)

    def resolve(self) -> Callable[..., R]:
        """The callable to use from now on: numba's dispatcher, or the plain function where compiling is off."""
        if self._call is None:
            self._call = self.python if compiling_is_off() else self._dispatcher()
        return self._call

    def digest(self) -> str:
        """A digest of this source, the constants it reads and every compiled function that it calls."""
        code = self._function.__code__
        parts: list[Any] = [code.co_code, code.co_names, code.co_varnames]
        parts += [c for c in code.co_consts if not isinstance(c, types.CodeType)]
        for name, value in self._globals().items():
            parts += [name, value.digest() if isinstance(value, Compiled) else value]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def _function(self) -> Any:
        return self.python

    def _globals(self) -> dict[str, Any]:
        """The globals that it names: callees and plain constants."""
        source = self._function
        kept = (Compiled, int, float, bool, str, tuple)
        found = {name: source.__globals__.get(name) for name in source.__code__.co_names}
        return {name: value for name, value in found.items() if isinstance(value, kept)}

    def _dispatcher(self) -> Callable[..., R]:
        import numba

        source = self._function
        callees = {name: value.resolve() for name, value in self._globals().items() if isinstance(value, Compiled)}
        # numba looks callees up in the function's globals: give it their dispatchers under the same names.
        bound = types.FunctionType(
            source.__code__, {**source.__globals__, **callees}, source.__name__, source.__defaults__, source.__closure__
        )
        bound.__qualname__ = f"{source.__qualname__}_{self.digest()}"
        bound.__module__, bound.__doc__ = source.__module__, source.__doc__
        dispatcher: Callable[..., R] = numba.njit(cache=True, error_model="numpy")(bound)
        return dispatcher


def compiling_is_off() -> bool:
    """Whether NUMBA_DISABLE_JIT asks for plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Compile `function` at its first call. Never fastmath: float sums keep their order, nothing is contracted."""
    return Compiled(function)
