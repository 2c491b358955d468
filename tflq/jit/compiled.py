"""`@compiled`: plain Python that numba compiles at its first call, and not before.

Importing numba and llvmlite costs more than reading a model, so nothing here imports them until a compiled
function is really called. With NUMBA_DISABLE_JIT=1 numba is never imported at all: the same source runs as Python,
slow and open to any debugger. Machine code is kept on disk (`code_cache`), under a digest of the function and of
everything it calls, so that a change to a callee can never leave stale code behind.

A compiled function may call other compiled functions of any module by their global names.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import os
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tflq.interrupts import uninterrupted
from tflq.jit.code_cache import CodeCache, code_folder
from tflq.jit.linking import linked

P = ParamSpec("P")
R = TypeVar("R")

#: A scalar of compiled code: int64 there, an int or a NumPy integer where the source runs as Python.
Int: TypeAlias = Any
#: Likewise for float64.
Real: TypeAlias = Any
#: An array of any type.
Array: TypeAlias = NDArray[Any]

#: Held while dispatchers are created: a function has one, no matter how many threads call it first.
_MAKING = threading.RLock()


class Compiled(Generic[P, R]):
    """A function with two bodies of one source: `python`, and the machine code compiled from it on demand."""

    #: True if other threads run while its machine code does.
    frees_threads = False

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self._call: Callable[..., R] | None = None
        self._inner: Any = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it, compiling it first if needed."""
        return (self._call or self.resolve())(*args, **kwargs)

    def resolve(self) -> Callable[..., R]:
        """Return the callable to use from now on: numba's dispatcher, or the plain function if compiling is off."""
        with _MAKING:
            if self._call is None:
                with uninterrupted():
                    self._call = self.python if compiling_is_off() else self._dispatcher()
            return self._call

    def bound(self, *args: Any) -> Callable[[], R]:
        """Bind the call with these arguments; it can be made repeatedly."""
        return functools.partial(self._call or self.resolve(), *args)

    def bind(self, **names: Any) -> Compiled[P, R]:
        """Return this function with other values for those globals: code specialised for constants."""
        source: Any = self.python
        bound = types.FunctionType(
            source.__code__, {**source.__globals__, **names}, source.__name__, source.__defaults__, source.__closure__
        )
        bound.__qualname__, bound.__module__, bound.__doc__ = source.__qualname__, source.__module__, source.__doc__
        specialized = copy.copy(self)
        specialized.python, specialized._call, specialized._inner = bound, None, None
        return specialized

    def digest(self) -> str:
        """Return a digest of this source, the constants it reads and every compiled function that it calls."""
        parts = [self.python.__defaults__, *_source(self._code)]
        for name, value in self._globals().items():
            parts += [name, _content(value)]
        if self.frees_threads:
            parts.append("nogil")
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def _code(self) -> types.CodeType:
        code: types.CodeType = self.python.__code__
        return code

    def _globals(self) -> dict[str, Any]:
        """Return the globals that it names: callees, plain constants and named tuples."""
        module = self.python.__globals__
        kept = (Compiled, int, float, bool, str, tuple, np.ndarray, type)
        values = {name: module.get(name) for name in _names(self._code)}
        return {name: value for name, value in values.items() if isinstance(value, kept)}

    def _dispatcher(self) -> Callable[..., R]:
        import numba

        dispatcher = numba.njit(error_model="numpy", nogil=self.frees_threads, no_cfunc_wrapper=True)(self._bound())
        # Dispatcher.enable_caching of numba.core.dispatcher does this with numba's own cache.
        dispatcher._cache = CodeCache(
            code_folder(), f"{self.python.__module__}.{self.python.__qualname__}", self.digest()
        )
        dispatcher.compile = _whole(dispatcher.compile)
        return cast(Callable[..., R], dispatcher)

    def inner(self) -> Any:
        """Return the object that compiled code calls."""
        with _MAKING:
            if self._inner is None:
                with uninterrupted():
                    self._inner = self._linked()
            return self._inner

    def _linked(self) -> Any:
        return linked(self._bound())

    def _bound(self) -> Any:
        """Return the function, with the objects that numba finds for callees under their names."""
        source: Any = self.python
        callees = {name: value.inner() for name, value in self._globals().items() if isinstance(value, Compiled)}
        bound = types.FunctionType(
            source.__code__, {**source.__globals__, **callees}, source.__name__, source.__defaults__, source.__closure__
        )
        bound.__qualname__ = f"{source.__qualname__}_{self.digest()}"
        bound.__module__, bound.__doc__ = source.__module__, source.__doc__
        return bound


def _whole(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Return the dispatcher's `compile`, which imports and registers things, so that Ctrl-C waits for its end."""

    @functools.wraps(compile_)
    def compiled_whole(*args: Any) -> Any:
        with uninterrupted():
            return compile_(*args)

    return compiled_whole


def _source(code: types.CodeType) -> list[object]:
    """Return the parts that define a function, functions and comprehensions within it included."""
    parts: list[object] = [code.co_code, code.co_names, code.co_varnames]
    for constant in code.co_consts:
        parts += _source(constant) if isinstance(constant, types.CodeType) else [constant]
    return parts


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function, or one within it, looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(value: Any) -> object:
    """Return the representation of a global in a digest."""
    if isinstance(value, Compiled):
        return value.digest()
    if isinstance(value, np.ndarray):  # its repr leaves most elements out
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, type):  # a named tuple
        return value.__qualname__, getattr(value, "_fields", ())
    return value


def compiling_is_off() -> bool:
    """Return whether NUMBA_DISABLE_JIT asks for plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Compile `function` at its first call. Never fastmath: float sums keep their order, nothing is contracted."""
    return Compiled(function)


def unlocked(function: Compiled[P, R]) -> Compiled[P, R]:
    """Let other threads run while its machine code does. Put it above `@compiled`."""
    function.frees_threads = True
    return function
