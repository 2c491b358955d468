"""`@compiled`: plain Python that is also machine code, shipped with tflq or compiled by numba at the first call.

Notification of compilations, which take seconds once: a context can count them and have a callback called.

Importing numba and llvmlite costs more than reading a model, so nothing imports them until a function is called for
which there is no machine code, neither with tflq nor on disk (`code_store`). With NUMBA_DISABLE_JIT=1 the
same source runs as Python, slow and open to any debugger. Machine code is found by a digest of the function and of
everything it calls, so that a change to a callee can never leave stale code behind.

A compiled function may call other compiled functions of any module by their global names. Python calls it with arrays,
numbers, truth values, None and tuples of these; it returns None, a number or a tuple of numbers.

Compiled functions that only other compiled functions call.

By default numba compiles every function to machine code that Python can call, and again for each constant argument. For
most functions here that code would never run: they are inlined where they are called. So these are kept as LLVM's
intermediate code, which is optimized once, in the machine code of the function that Python calls.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import logging
import os
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import EnumMeta
from functools import cache
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from tflq.interrupts import uninterrupted

if TYPE_CHECKING:
    from tflq.engine.jit.native import NativeFunction


class Compilations:
    """The functions compiled while a context lasts, for how many argument types each, and the seconds it took.

    `tell` is called with this object whenever a compilation begins or ends; without it, the enclosing context's is
    called.
    """

    def __init__(self, tell: Callable[[Compilations], None] | None, around: Compilations | None) -> None:
        self.functions, self.seconds = 0, 0.0
        self._tell, self._around = tell, around
        self._depth, self._start = 0, 0.0

    def begin(self) -> None:
        """Note that a function begins to be compiled, perhaps for another one that is being compiled."""
        now = time.monotonic()
        for listening in self._and_around():
            listening._start = now if listening._depth == 0 else listening._start
            listening._depth += 1
        self._say()

    def end(self) -> None:
        """Note that the function that began last is done."""
        now = time.monotonic()
        for listening in self._and_around():
            listening.functions += 1
            listening._depth -= 1
            listening.seconds += now - listening._start if listening._depth == 0 else 0.0
        self._say()

    def _and_around(self) -> Iterator[Compilations]:
        listening: Compilations | None = self
        while listening is not None:
            yield listening
            listening = listening._around

    def _say(self) -> None:
        told = next((listening for listening in self._and_around() if listening._tell is not None), None)
        if told is not None and told._tell is not None:
            told._tell(told)


_HEARD: ContextVar[Compilations | None] = ContextVar("compilations", default=None)


@contextmanager
def heard(tell: Callable[[Compilations], None] | None = None) -> Iterator[Compilations]:
    """Yield the compilations of this thread while the context lasts, those within inner contexts included."""
    compilations = Compilations(tell, _HEARD.get())
    token = _HEARD.set(compilations)
    try:
        yield compilations
    finally:
        _HEARD.reset(token)


def listener() -> Compilations | None:
    """Return the object that receives this thread's compilations now."""
    return _HEARD.get()


P = ParamSpec("P")
R = TypeVar("R")

#: A scalar of compiled code: int64 there, an int or a NumPy integer where the source runs as Python.
Int: TypeAlias = Any
#: Likewise for float64.
Real: TypeAlias = Any

#: Held while dispatchers are created: a function has one, no matter how many threads call it first.
_MAKING = threading.RLock()


class Compiled(Generic[P, R]):
    """A function with two bodies of one source: `python`, and the machine code compiled from it on demand."""

    #: True if other threads run while its machine code does.
    frees_threads = False
    #: True for classes whose code is not compiled from `python`: `digest` is one of the files that write it.
    writes_code = False
    #: Positions of parameters whose arrays it never writes to; `writes` declares them.
    reads: frozenset[int] = frozenset()

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self._call: Callable[..., R] | None = None
        self._inner: Any = None
        self._count: int = self._code.co_argcount
        self._digest = self._origin = ""
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it, compiling it first if needed."""
        call: Any = self._call or self.resolve()
        is_whole = len(args) == self._count and not kwargs
        result: R = call(*args) if is_whole else call(*self._all(args, kwargs))
        return result

    def resolve(self) -> Callable[..., R]:
        """Return the callable to use from now on: machine code, or the plain function if compiling is off."""
        with _MAKING:
            if self._call is None:
                self._call = self.python if compiling_is_off() else self._native()
            return self._call

    def bound(self, *args: Any) -> Callable[[], R]:
        """Bind the call with these arguments; it can be made repeatedly."""
        return self._bound_call(args)

    def _bound_call(self, args: tuple[Any, ...]) -> Callable[[], R]:
        call: Any = self._call or self.resolve()
        if call is self.python:
            return functools.partial(call, *args)
        bound: Callable[[], R] = call.bound(args if len(args) == self._count else self._all(args, {}))
        return bound

    def _all(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position.

        Raises:
            TypeError: They do not fit the function.
        """
        bound = inspect.signature(self.python).bind(*args, **named)
        bound.apply_defaults()
        return bound.args

    def bind(self, **names: Any) -> Compiled[P, R]:
        """Return this function with other values for those globals: code specialised for constants."""
        source: Any = self.python
        bound = types.FunctionType(
            source.__code__, {**source.__globals__, **names}, source.__name__, source.__defaults__, source.__closure__
        )
        bound.__qualname__, bound.__module__, bound.__doc__ = source.__qualname__, source.__module__, source.__doc__
        specialized = copy.copy(self)
        specialized.python, specialized._call, specialized._inner = bound, None, None
        specialized._digest = specialized._origin = ""
        return specialized

    def digest(self) -> str:
        """Return a digest of this bytecode, the constants it reads and every compiled function that it calls."""
        if not self._digest:
            self._digest = self._hash(methodcaller("digest"), _bytecode(self._code))
        return self._digest

    def origin(self) -> str:
        """Return a digest of the same by the files of the source: the same for every version of Python.

        It is valid only if no file has changed since it was imported.
        """
        if self.writes_code:
            return self.digest()
        if not self._origin:
            code = self._code
            content = digest_of_file(code.co_filename)
            place = [content, code.co_name, code.co_firstlineno] if content else _bytecode(code)
            self._origin = self._hash(methodcaller("origin"), place)
        return self._origin

    @property
    def is_written(self) -> bool:
        """True if its code, or that of a function that it calls, is not compiled from Python."""
        return self.writes_code or any(v.is_written for v in self._globals().values() if isinstance(v, Compiled))

    def _hash(self, digest: Callable[[Any], str], source: list[object]) -> str:
        parts = [self.python.__defaults__, *source]
        for name, value in sorted(self._globals().items()):
            parts += [name, digest(value) if isinstance(value, Compiled) else _content(value)]
        if self.frees_threads:
            parts.append("nogil")
        if self.reads:
            parts.append(f"reads {sorted(self.reads)}")
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def _code(self) -> types.CodeType:
        code: types.CodeType = self.python.__code__
        return code

    def _globals(self) -> dict[str, Any]:
        """Return the globals that it names: callees, plain constants, named tuples and functions of `math`."""
        module = self.python.__globals__
        kept = (Compiled, int, float, bool, str, tuple, np.ndarray, type, types.BuiltinFunctionType)
        values = {name: module.get(name) for name in _names(self._code)}
        return {name: value for name, value in values.items() if isinstance(value, kept)}

    def _native(self) -> NativeFunction:
        from tflq.engine.jit.native import NativeFunction

        name = f"{self.python.__module__}.{self.python.__qualname__}"
        return NativeFunction(name, self)

    def inner(self) -> Any:
        """Return the object that compiled code calls."""
        with _MAKING:
            if self._inner is None:
                with uninterrupted():
                    self._inner = self._link()
            return self._inner

    def _link(self) -> Any:
        return link(self.linkable())

    def linkable(self) -> Any:
        """Return the function as numba compiles it, with the objects that numba finds for callees under their names."""
        source: Any = self.python
        callees = {name: value.inner() for name, value in self._globals().items() if isinstance(value, Compiled)}
        bound = types.FunctionType(
            source.__code__, {**source.__globals__, **callees}, source.__name__, source.__defaults__, source.__closure__
        )
        bound.__qualname__ = f"{source.__qualname__}_{self.digest()}"
        bound.__module__, bound.__doc__ = source.__module__, source.__doc__
        return bound


def _bytecode(code: types.CodeType) -> list[object]:
    """Return the parts that define a function, functions and comprehensions within it included."""
    parts: list[object] = [code.co_code, code.co_names, code.co_varnames]
    for constant in code.co_consts:
        parts += _bytecode(constant) if isinstance(constant, types.CodeType) else [constant]
    return parts


@functools.cache
def digest_of_file(name: str) -> str:
    """Return a digest of a file; "" if there is none."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return ""


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function, or one within it, looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(value: Any) -> object:
    """Return the representation of a global in a digest."""
    if isinstance(value, np.ndarray):  # its repr leaves most elements out
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, EnumMeta):
        return value.__qualname__, str(dict(value.__members__))
    if isinstance(value, type):  # a named tuple
        return value.__qualname__, getattr(value, "_fields", ())
    return value


def compiling_is_off() -> bool:
    """Return whether NUMBA_DISABLE_JIT asks for plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Compile `function` at its first call. Never fastmath: float sums keep their order, nothing is contracted."""
    return Compiled(function)


def writes(*names: str) -> Callable[[Compiled[P, R]], Compiled[P, R]]:
    """Declare the parameters whose arrays a function writes to. Put it above everything else.

    All others are compiled as read-only arrays: one body serves arrays of both kinds, and numba refuses a function that
    writes to them.
    """

    def declare(function: Compiled[P, R]) -> Compiled[P, R]:
        parameters = function._code.co_varnames[: function._count]
        if unknown := set(names) - set(parameters):
            raise ValueError(f"{function.python.__qualname__} has no parameter {', '.join(sorted(unknown))}")
        function.reads = frozenset(i for i, name in enumerate(parameters) if name not in names)
        return function

    return declare


#: Minor versions of numba whose private interfaces these are; with others plain functions are compiled.
TESTED = tuple(f"0.{minor}" for minor in range(62, 69))


def link(function: Any) -> Any:
    """Return a numba dispatcher of `function` for compiled callers. Python must not call it."""
    import numba

    if not is_known():
        return numba.njit(error_model="numpy")(function)
    dispatcher = numba.njit(
        error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_parts()[0]
    )(function)
    dispatcher.__class__ = _parts()[1]
    return dispatcher


@cache
def is_known() -> bool:
    """Return whether the installed numba has the interfaces used here; a warning, once, if it has not."""
    import numba

    minor = ".".join(numba.__version__.split(".")[:2])
    reason = "" if minor in TESTED else f"tested with {TESTED[0]} to {TESTED[-1]}"
    if not reason:
        try:
            _parts()
        except (ImportError, AttributeError, TypeError) as error:
            reason = str(error)
    if reason:
        text = "tflq: numba %s compiles every function by itself, which takes longer (%s)"
        logging.getLogger("tflq").warning(text, numba.__version__, reason)
    return not reason


@cache
def _parts() -> tuple[Any, Any]:
    """Return the compiler and the class of these dispatchers."""
    from numba import _dynfunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys
    from numba.core.typed_passes import NativeLowering
    from numba.core.types.misc import unliteral

    class Library(JITCodeLibrary):  # type: ignore[misc]
        """Intermediate code with that of all functions it calls, neither optimized nor compiled to machine code."""

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                if library is not rtsys.library:  # it is linked to the function that Python calls
                    self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):  # type: ignore[misc]
        """Lowering to intermediate code, under a name of its own in the typing context."""

        _name = "tflq_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            described, environment = state["cr"].fndesc, state["cr"].env
            # numba identifies a function by a Python object; this one has no address.
            known = _dynfunc.make_function(
                described.lookup_module(), described.qualname, "", 0, environment, (state.library,)
            )
            state.targetctx.insert_user_function(known, described, [state.library])
            state["cr"] = _LowerResult(described, state["cr"].call_helper, known, environment)
            return True

    class LinkedCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            (pipeline,) = super().define_pipelines()
            pipeline.passes = [(Lowering if each is NativeLowering else each, why) for each, why in pipeline.passes]
            return [pipeline]

    class LinkedDispatcher(CPUDispatcher):  # type: ignore[misc]
        def get_call_template(self, args: Any, kws: Any) -> Any:
            """Return numba's template, with the types of constants in place of their values."""
            plain = {name: unliteral(kind) for name, kind in kws.items()}
            return super().get_call_template(tuple(map(unliteral, args)), plain)

    return LinkedCompiler, LinkedDispatcher
