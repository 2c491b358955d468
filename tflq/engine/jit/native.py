"""Calls of machine code: arguments as machine words, and addresses.

Addresses of functions that are written as LLVM code: found with tflq, on disk, or emitted.

Compiled code that calls one of many such functions takes its address as an argument, a number. So it is compiled once
for all of them, and a function that no model needed before costs milliseconds.

Arguments of compiled functions as machine words, and the types of arguments as a text.

The text is the same for every version of Python and numba, and is found without importing numba: machine code that was
made elsewhere is looked up by it. A number is one word, an array the address of its object: compiled code reads the
array's data, shape and strides there, as every extension module that is compiled with NumPy's headers does.

Calls of machine code with fixed arguments.

Calls of machine code: found on disk or compiled, loaded, and called by an address and words in memory.
"""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tflq.engine.jit.code_store import MAKING, Collecting, machine_code
from tflq.engine.jit.compiled import digest_of_file
from tflq.engine.jit.images import MachineCode, load
from tflq.engine.jit.processors import NotBuildable, ProcessorLevel
from tflq.interrupts import uninterrupted

if TYPE_CHECKING:
    from tflq.engine.jit.building import Write
    from tflq.engine.jit.compiled import Compiled

#: Addresses by name and digest. Loaded code stays as long as the process.
_KNOWN: dict[tuple[str, str], int] = {}


class Unavailable(Exception):
    """There is no address: the system has no memory that may be executed, or no function that the code calls."""


def address_of(name: str, digest: str, write: Write) -> int:
    """Return the address of the function that `write` writes; name and digest decide its code.

    Raises:
        Unavailable: See there.
    """
    key = name, digest
    with MAKING:
        if key not in _KNOWN:
            with uninterrupted():
                _KNOWN[key] = _found(name, digest, write)
        return _KNOWN[key]


def _found(name: str, digest: str, write: Write) -> int:
    try:
        code = machine_code(name, lambda: digest, lambda: digest, (), partial(_emit, write), is_written=True)
        return load(code.body) if code.body else 0  # nothing calls code that is only collected
    except (OSError, NotBuildable) as error:
        logging.getLogger("tflq").warning("tflq: machine code cannot be loaded: %s", error)
        raise Unavailable(str(error)) from error


def _emit(write: Write, level: ProcessorLevel | None) -> MachineCode:
    from tflq.engine.jit.building import emit

    return emit(write, level)


#: Calls of one chain: Python learns of Ctrl-C between chains.
_LONGEST_CHAIN = 64
#: The bounds of values that numba takes for int64; larger ones are uint64.
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_FLOAT, _INTEGER = struct.Struct("<d"), struct.Struct("<q")
#: Offsets in bytes of the addresses of an array's data, shape and strides in its object, which begins with CPython's
#: header of 16 bytes.
DATA, SHAPE, STRIDES = 16, 32, 40


class UnknownArgument(TypeError):
    """A value that only numba knows how to pass."""


def add_types(args: tuple[Any, ...], reads: Collection[int] = ()) -> str:
    """Return the types of arguments, such as "<i2:2C,i8,(f8,f8)". Arrays at the positions `reads`, and those of tuples
    there, are not written to, so it does not matter whether they can be.

    Raises:
        UnknownArgument: A value is neither an array, a number, a truth value, None, nor a tuple of these.
    """
    return ",".join(_typed(value, i in reads) for i, value in enumerate(args))


def _typed(value: Any, is_read: bool = False) -> str:
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        access = "" if flags.writeable or is_read else "r"
        return f"{value.dtype.str}:{value.ndim}{layout}{access}{'' if flags.aligned else 'u'}"
    if kind is bool or kind is np.bool_:
        return "b"
    if isinstance(value, int):
        return "i8" if _LEAST <= value <= _MOST else "u8"
    if kind is float:
        return "f8"
    if isinstance(value, np.generic) and value.dtype.kind in "iuf":
        return value.dtype.str[1:]
    if isinstance(value, tuple):
        name = f"{kind.__module__}.{kind.__qualname__}" if kind is not tuple else ""
        return f"{name}({','.join(_typed(part, is_read) for part in value)})"
    if value is None:
        return "n"
    raise UnknownArgument(f"an argument of compiled code is a {kind.__name__}")


def pack(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Return (key, words) of arguments.

    Keys are equal only if `add_types` gives the same text. Words are what compiled code reads: addresses of arrays,
    integers, the bits of floats, 0 for None.
    """
    parts: list[Any] = []
    found: list[int] = []
    for value in args:
        kind = value.__class__
        if kind is np.ndarray:
            parts += (value.dtype, value.ndim, value.flags.num)
            found.append(id(value))
        elif kind is int and value <= _MOST:
            parts.append(int)
            found.append(value)
        elif kind is float:
            parts.append(float)
            found.append(_INTEGER.unpack(_FLOAT.pack(value))[0])
        elif isinstance(value, tuple):
            inner, words = pack(value)
            parts.append((kind, inner))
            found += words
        else:
            parts.append("u8" if isinstance(value, int) and value > _MOST else kind)
            found.append(_word(value))
    return tuple(parts), found


def _word(value: Any) -> int:
    """Return the word of a value that is rare; 0 for one that only numba can pass."""
    if isinstance(value, np.floating):
        return int(value.view(f"i{value.itemsize}")) if value.itemsize <= 8 else 0
    if not isinstance(value, (int, np.integer, np.bool_)):
        return 0
    number = int(value)
    return number if number <= _MOST else number - (1 << 64)


@cache
def reads_arrays() -> bool:
    """Return whether arrays are laid out here as compiled code reads them (NumPy's PyArrayObject_fields)."""
    sample = np.zeros((3, 5), np.int16)[::2]
    fields = ctypes.c_int64 * 3
    try:
        data = ctypes.c_int64.from_address(id(sample) + DATA).value
        shape, strides = (fields.from_address(id(sample) + at)[0] for at in (SHAPE, STRIDES))
        told = [list((ctypes.c_int64 * 2).from_address(at)) for at in (shape, strides)]
    except (ValueError, OverflowError):
        return False
    return (data, told) == (sample.__array_interface__["data"][0], [[2, 5], [20, 2]])


#: How struct reads a number of each type in its word, whose low bytes come first.
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {"b": "?7x", "f4": "f4x", "f8": "d", "u1": "B7x", "u2": "H6x", "u4": "I4x", "u8": "Q"}
    | dict.fromkeys(("i1", "i2", "i4", "i8"), "q")
)


def results(text: str) -> struct.Struct:
    """Return what reads the words of a result: those types of `add_types` that are numbers, a tuple of them, or n for
    none."""
    parts = text.strip("()").split(",") if text not in ("n", "()") else []
    return struct.Struct("<" + "".join(_NUMBERS[part] for part in parts))


class MachineCall:
    """A call with fixed arguments, to be made repeatedly: its words are all that compiled code needs to make it.

    The call keeps arrays among the arguments alive.
    """

    __slots__ = ("args", "at", "fail", "function", "words")

    def __init__(self, entry: Any, args: tuple[Any, ...], words: list[int], fail: Callable[..., Any]) -> None:
        self.words = (ctypes.c_int64 * (1 + len(words)))(entry.address, *words)
        self.at, self.function = ctypes.addressof(self.words), entry.call
        self.args, self.fail = args, fail

    def __call__(self) -> None:
        """Make the call."""
        if self.function(self.at):
            self.fail(*self.args)

    @property
    def is_short(self) -> bool:
        """True if other threads need not run meanwhile."""
        return isinstance(self.function, _KEEPING)


class MachineChain:
    """Several machine calls, made in order by one call from Python."""

    __slots__ = ("at", "calls", "function", "places", "words")

    def __init__(self, calls: Sequence[MachineCall], entry: int) -> None:
        self.calls, self.function = calls, _KEEPING(entry)
        self.places = (ctypes.c_int64 * len(calls))(*(call.at for call in calls))
        self.words = (ctypes.c_int64 * 4)(entry, len(calls), ctypes.addressof(self.places), 0)
        self.at = ctypes.addressof(self.words)

    def __call__(self) -> None:
        """Make the calls."""
        if self.function(self.at):
            failed = self.calls[self.failed]
            failed.fail(*failed.args)

    @property
    def failed(self) -> int:
        """The number of the call that failed last."""
        return self.words[3]


def chained(calls: Sequence[Callable[[], object]]) -> list[tuple[int, Callable[[], object]]]:
    """Return calls with their positions. Neighbours that keep Python's lock become one, at the first's position."""
    found: list[tuple[int, Callable[[], object]]] = []
    for _, group in groupby(enumerate(calls), lambda one: isinstance(one[1], MachineCall) and one[1].is_short):
        members = list(group)
        for start in range(0, len(members), _LONGEST_CHAIN):
            part = members[start : start + _LONGEST_CHAIN]
            machine = [call for _, call in part if isinstance(call, MachineCall) and call.is_short]
            entry = _chain() if len(machine) > 1 else 0
            found += [(part[0][0], MachineChain(machine, entry))] if entry else part
    return found


@cache
def _chain() -> int:
    """Return the address of what makes the calls of a chain; 0 if there is none."""
    try:
        return address_of(f"{__name__}.chain", digest_of_file(__file__)[:16], _write_chain)
    except Unavailable:
        return 0


def _write_chain(module: Any, name: str) -> None:
    """Write what makes the calls of a chain: of the words (its address, count, places of the calls' words, room for a
    number). It stops at a call that fails, whose number it leaves in the last word.
    """
    from llvmlite import ir

    word, status = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(status, [word.as_pointer()])
    function = ir.Function(module, kind, name)
    (at,) = function.args
    begin, loop, call, failed, done = (
        function.append_basic_block(b) for b in ("begin", "loop", "call", "failed", "done")
    )
    builder = ir.IRBuilder(begin)
    one, zero = ir.Constant(word, 1), ir.Constant(word, 0)
    count, place = (builder.load(builder.gep(at, [ir.Constant(word, number)])) for number in (1, 2))
    places = builder.inttoptr(place, word.as_pointer())
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(word)
    number.add_incoming(zero, begin)
    builder.cbranch(builder.icmp_signed("<", number, count), call, done)
    builder.position_at_end(call)
    words = builder.inttoptr(builder.load(builder.gep(places, [number])), word.as_pointer())
    result = builder.call(builder.inttoptr(builder.load(words), kind.as_pointer()), [words])
    number.add_incoming(builder.add(number, one), call)
    builder.cbranch(builder.icmp_signed("==", result, ir.Constant(status, 0)), loop, failed)
    builder.position_at_end(failed)
    builder.store(number, builder.gep(at, [ir.Constant(word, 3)]))
    builder.branch(done)
    builder.position_at_end(done)
    returned = builder.phi(status)
    returned.add_incoming(ir.Constant(status, 0), loop)
    returned.add_incoming(result, failed)
    builder.ret(returned)


#: Calls that keep Python's lock, and calls that free it.
_KEEPING = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_FREEING = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Entry:
    """Loaded machine code: its address, the function that calls it, and how to read its result."""

    def __init__(self, code: MachineCode, frees_threads: bool) -> None:
        self.address = load(code.body) if code.body else 0
        call: Callable[[Any], int] = (_FREEING if frees_threads else _KEEPING)(self.address)
        self.call = call if code.body else _nothing
        self.result = results(code.result)
        self.places = self.result.size // 8
        self.is_tuple = code.result.startswith("(")
        self._words: struct.Struct | None = None

    def words_of(self, words: list[int]) -> bytes:
        """Return the memory of a call: the address, the words of the arguments, and room for the result."""
        if self._words is None:
            self._words = struct.Struct(f"<{1 + len(words)}q{8 * self.places}x")
        return self._words.pack(self.address, *words)


def _nothing(memory: bytes) -> int:
    """Do nothing: code for another processor is collected, and the results stay as they are in memory."""
    return 0


class NativeFunction:
    """A compiled function that Python calls. There is machine code for each combination of types of arguments."""

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
            with MAKING, uninterrupted():
                self._known[key] = found = self._found(args)
            return found, words

    def _found(self, args: tuple[Any, ...]) -> Entry | None:
        try:
            types = add_types(args, self._source.reads)
        except UnknownArgument:
            return None
        if types not in self._entries:
            self._entries[types] = self._made(types, args)
        return self._entries[types]

    def _made(self, types: str, args: tuple[Any, ...]) -> Entry | None:
        """Return the machine code for these types; None if it cannot be made or loaded."""
        from tflq.engine.jit.processors import NotBuildable

        if Collecting.collector is None and not reads_arrays():
            return None
        source = self._source
        try:
            make = partial(_build, source, args)
            code = machine_code(self._name, source.origin, source.digest, (types,), make, source.is_written)
        except NotBuildable as error:
            logging.getLogger("tflq").info("tflq: only numba can call %s: %s", self._name, error)
            return None
        try:
            return Entry(code, self._frees_threads)
        except OSError as error:  # a hardened system has no memory for code
            logging.getLogger("tflq").warning("tflq: machine code cannot be loaded: %s", error)
            return None

    def _fail(self, *args: Any) -> NoReturn:
        """Raise what a call of machine code raised: what it wrote before is not written again."""
        self._by_numba(*map(_copied, args))
        raise RuntimeError(f"machine code of {self._name} failed, and its source does not")

    def _by_numba(self, *args: Any) -> Any:
        """Call the function as numba does, which raises exceptions of compiled code."""
        if self._numba is None:
            with MAKING, uninterrupted():
                import numba

                self._numba = numba.njit(error_model="numpy", nogil=self._frees_threads)(self._source.linkable())
        return self._numba(*args)


def _build(source: Compiled[..., Any], args: tuple[Any, ...], level: ProcessorLevel | None) -> MachineCode:
    from tflq.engine.jit.building import build

    return build(source.linkable(), args, level, source.reads)


def _copied(value: Any) -> Any:
    """Return an argument whose arrays are copies."""
    if isinstance(value, tuple):
        parts = map(_copied, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.copy("K") if isinstance(value, np.ndarray) else value
