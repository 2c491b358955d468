"""Calls of machine code: found on disk or compiled, loaded, and called by an address and words in memory."""

from __future__ import annotations

import ctypes
import logging
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from tflq.engine.jit import shipped
from tflq.engine.jit.arguments import UnknownArgument, add_types, pack, reads_arrays, results
from tflq.engine.jit.code_cache import code_folder
from tflq.engine.jit.compilations import listener
from tflq.engine.jit.images import Code, load, unpacked
from tflq.engine.jit.machine_calls import MachineCall
from tflq.engine.jit.targets import stamp
from tflq.interrupts import uninterrupted

if TYPE_CHECKING:
    from tflq.engine.jit.compiled import Compiled

#: Held while machine code is made or loaded: once for a function, no matter how many threads call it first.
_MAKING = threading.RLock()
#: Calls that keep Python's lock, and calls that free it.
_KEEPING = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_FREEING = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Entry:
    """Loaded machine code: its address, the function that calls it, and how to read its result."""

    def __init__(self, code: Code, frees_threads: bool, call: Callable[[Any], int] | None = None) -> None:
        self.address = 0 if call is not None else load(code.body)
        self.call = call or (_FREEING if frees_threads else _KEEPING)(self.address)
        self.result = results(code.result)
        self.places = self.result.size // 8
        self.is_tuple = code.result.startswith("(")
        self._words: struct.Struct | None = None

    def words_of(self, words: list[int]) -> bytes:
        """Return the memory of a call: the address, the words of the arguments, and room for the result."""
        if self._words is None:
            self._words = struct.Struct(f"<{1 + len(words)}q{8 * self.places}x")
        return self._words.pack(self.address, *words)


class Native:
    """A compiled function that Python calls. There is machine code for each combination of types of arguments."""

    #: Makes the entry of (name, source, types, arguments) in place of `_made`, if code is only collected.
    instead: ClassVar[Callable[[str, Any, str, tuple[Any, ...]], Entry | None] | None] = None

    def __init__(self, name: str, source: Compiled[..., Any]) -> None:
        self._name, self._source, self._frees_threads = name, source, source.frees_threads
        self._entries: dict[str, Entry | None] = {}  # by types
        self._known: dict[tuple[Any, ...], Entry | None] = {}  # the same, by the key of arguments
        self._numba: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        entry, words = self._entry_of(args)
        if entry is None:
            return self._by_numba(*args)
        memory = entry.words_of(words)
        if entry.call(memory):
            self._fail(*args)
        if not entry.places:
            return None
        # Nothing else refers to these bytes, in which compiled code wrote its result.
        result = entry.result.unpack_from(memory, 8 + 8 * len(words))
        return result if entry.is_tuple else result[0]

    def bound(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """Bind the call with these arguments."""
        entry, words = self._entry_of(args)
        if entry is None or entry.places:
            return partial(self, *args)
        return MachineCall(entry, args, words, self._fail)

    def _entry_of(self, args: tuple[Any, ...]) -> tuple[Entry | None, list[int]]:
        """Return the machine code for these arguments, made if necessary, and their words; None if only numba can call
        the function."""
        key, words = pack(args)
        try:
            return self._known[key], words
        except KeyError:
            with _MAKING, uninterrupted():
                self._known[key] = found = self._found(args)
            return found, words

    def _found(self, args: tuple[Any, ...]) -> Entry | None:
        try:
            types = add_types(args, self._source.reads)
        except UnknownArgument:
            return None
        if types not in self._entries:
            instead = Native.instead
            self._entries[types] = (
                self._made(types, args) if instead is None else instead(self._name, self._source, types, args)
            )
        return self._entries[types]

    def _made(self, types: str, args: tuple[Any, ...]) -> Entry | None:
        """Return machine code that is shipped or on disk, else compile it and keep it; None if it cannot be loaded."""
        if not reads_arrays():
            return None
        code = self._ship(types) or self._kept(types)
        if code is None:
            code = self._compile(args)
            if code is None:
                return None
            code_folder().write(self._file(types), code.packed())
        try:
            return Entry(code, self._frees_threads)
        except OSError as error:  # a hardened system has no memory for code
            logging.getLogger("tflq").warning("tflq: machine code cannot be loaded: %s", error)
            return None

    def _ship(self, types: str) -> Code | None:
        if not shipped.is_here():
            return None
        content = shipped.read(shipped.name_of(self._name, self._source.origin(), types))
        with suppress(ValueError):
            return None if content is None else unpacked(content)
        return None

    def _kept(self, types: str) -> Code | None:
        """Return what an earlier process kept; a file that is no machine code is removed."""
        content = code_folder().read(self._file(types))
        try:
            return None if content is None else unpacked(content)
        except ValueError:
            code_folder().remove(self._file(types))
            return None

    def _file(self, types: str) -> str:
        return f"{shipped.name_of(self._name, self._source.digest(), types, stamp())}.code"

    def _compile(self, args: tuple[Any, ...]) -> Code | None:
        from tflq.engine.jit.building import build
        from tflq.engine.jit.machines import NotBuildable

        heard = listener()
        if heard is not None:
            heard.begin()
        try:
            return build(self._source.linkable(), args, reads=self._source.reads)
        except NotBuildable as error:
            logging.getLogger("tflq").info("tflq: only numba can call %s: %s", self._name, error)
            return None
        finally:
            if heard is not None:
                heard.end()

    def _fail(self, *args: Any) -> NoReturn:
        """Raise what a call of machine code raised: what it wrote before is not written again."""
        self._by_numba(*map(_copied, args))
        raise RuntimeError(f"machine code of {self._name} failed, and its source does not")

    def _by_numba(self, *args: Any) -> Any:
        """Call the function as numba does, which raises exceptions of compiled code."""
        if self._numba is None:
            with _MAKING, uninterrupted():
                import numba

                self._numba = numba.njit(error_model="numpy", nogil=self._frees_threads)(self._source.linkable())
        return self._numba(*args)


def _copied(value: Any) -> Any:
    """Return an argument whose arrays are copies."""
    if isinstance(value, tuple):
        parts = map(_copied, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.copy("K") if isinstance(value, np.ndarray) else value
