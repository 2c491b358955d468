"""Arguments of compiled functions as machine words, and the types of arguments as a text.

The text is the same for every version of Python and numba, and is found without importing numba: machine code that was
made elsewhere is looked up by it. A number is one word, an array the address of its object: compiled code reads the
array's data, shape and strides there, as every extension module that is compiled with NumPy's headers does.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

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
