"""Arguments of compiled functions as machine words, and the types of arguments as a text.

The text is the same for every version of Python and numba, and is found without importing numba: machine code that was
made elsewhere is looked up by it. Words are what numba passes for a value, one machine register each.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

#: The bounds of values that numba takes for int64; larger ones are uint64.
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_WORD = (1 << 64) - 1


class UnknownArgument(TypeError):
    """A value that only numba knows how to pass."""


def typed(args: tuple[Any, ...]) -> str:
    """Return the types of arguments, such as "<i2:2C,i8,(f8,f8)".

    Raises:
        UnknownArgument: A value is neither an array, a number, a truth value, None, nor a tuple of these.
    """
    return ",".join(map(_typed, args))


def _typed(value: Any) -> str:
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{value.dtype.str}:{value.ndim}{layout}{'' if flags.writeable else 'r'}{'' if flags.aligned else 'u'}"
    if kind is int:
        return "i8" if _LEAST <= value <= _MOST else "u8"
    if kind is float:
        return "f8"
    if kind is bool or kind is np.bool_:
        return "b"
    if isinstance(value, np.generic) and value.dtype.kind in "iuf":
        return value.dtype.str[1:]
    if isinstance(value, tuple):
        name = f"{kind.__module__}.{kind.__qualname__}" if kind is not tuple else ""
        return f"{name}({','.join(map(_typed, value))})"
    if value is None:
        return "n"
    raise UnknownArgument(f"an argument of compiled code is a {kind.__name__}")


def words(args: tuple[Any, ...]) -> list[int]:
    """Return the words of arguments, each as a signed integer of 64 bits."""
    return [word for value in args for word in _words(value)]


def kinds(args: tuple[Any, ...]) -> str:
    """Return the kinds of the words: p for an address, i for an integer, f and d for floats of 32 and 64 bits."""
    return "".join(map(_kinds, args))


def _kinds(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "ppiip" + "ii" * value.ndim
    if isinstance(value, tuple):
        return "".join(map(_kinds, value))
    if isinstance(value, (float, np.floating)):
        return "f" if np.asarray(value).itemsize == 4 else "d"
    return "p" if value is None else "i"


def _words(value: Any) -> Iterator[int]:
    if isinstance(value, np.ndarray):
        # Compiled code does not count references to arrays without an owner.
        yield from (0, 0, value.size, value.itemsize, value.__array_interface__["data"][0])
        yield from value.shape
        yield from value.strides
    elif isinstance(value, tuple):
        for each in value:
            yield from _words(each)
    elif isinstance(value, (float, np.floating)):
        yield from struct.unpack("<q" if np.asarray(value).itemsize == 8 else "<i", np.asarray(value).tobytes())
    else:
        number = 0 if value is None else int(value)
        yield number if number <= _MOST else number - _WORD - 1


def results(text: str) -> Callable[[Sequence[int]], Any]:
    """Return what makes a Python value of the words of a result of these types: those of `typed` for numbers and tuples
    of them, or n for none."""
    if text == "n":
        return lambda words: None
    if text.startswith("("):
        parts = [_RESULTS[part] for part in text[1:-1].split(",") if part]
        return lambda words: tuple(part(int(word)) for part, word in zip(parts, words, strict=True))
    part = _RESULTS[text]
    return lambda words: part(int(words[0]))


def _float32(word: int) -> float:
    return ctypes.c_float.from_buffer_copy(struct.pack("<q", word)[:4]).value


#: Numbers of words by type.
_RESULTS: dict[str, Callable[[int], Any]] = {
    "b": lambda word: bool(word & 1),
    "f4": _float32,
    "f8": lambda word: struct.unpack("<d", struct.pack("<q", word))[0],
    **{f"i{size}": (lambda word: word) for size in (1, 2, 4, 8)},
    **{f"u{size}": partial(operator.and_, (1 << 8 * size) - 1) for size in (1, 2, 4, 8)},
}


def places(text: str) -> int:
    """Return the number of words of a result of these types."""
    if text == "n":
        return 0
    return len([part for part in text[1:-1].split(",") if part]) if text.startswith("(") else 1
