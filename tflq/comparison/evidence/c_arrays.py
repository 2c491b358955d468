"""Arrays in C source, and names as files spell them.

Arrays in C and C++ source, as devices' tools print them: names and numbers, in any form of declaration.

Names and numbers of a model's tensors, as files and logs spell them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.errors import InputError
from tflq.model.ir import Model, view
from tflq.typing import Array

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: Attributes may follow an array's extents; a std::array has its extents before its name.
_ATTRIBUTE = r"(?:[A-Za-z_]\w*\b\s*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*)?)"
_START = re.compile(
    rf"(?:\b(?P<name>[A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)+{_ATTRIBUTE}*|>\s*(?P<std>[A-Za-z_]\w*)\s*)=\s*\{{"
)
_BRACE = re.compile(r"[{}]")
_CAST = re.compile(r"\(\s*(?:const\s+|unsigned\s+|signed\s+)*\w+\s*\)")
_NOT_FINITE = {"INFINITY": np.inf, "INF": np.inf, "HUGE_VALF": np.inf, "NAN": np.nan}


@dataclass(frozen=True, slots=True)
class Numbers:
    """One array: its name and the words of its initializer, in order and flat."""

    name: str
    words: tuple[str, ...]

    def array(self, carrier: np.dtype[Any], size: int) -> Array:
        """Return the elements in a tensor's type. Codes may be written without a sign (0xff for -1), or byte by byte.

        Raises:
            InputError: A word is not a number, or is outside the type.
        """
        if carrier.kind == "f" and not self._is_bytes(carrier, size):
            return np.array([real_of(word, self.name) for word in self.words], carrier)
        if carrier.kind not in "iufb":
            raise InputError(f"cannot be read from C as {carrier}", name=self.name)
        if self._is_bytes(carrier, size):
            data = bytes(_integer(word, np.dtype(np.uint8), self.name) for word in self.words)
            return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier)
        return np.array([_integer(word, carrier, self.name) for word in self.words], carrier)

    def _is_bytes(self, carrier: np.dtype[Any], size: int) -> bool:
        return carrier.itemsize > 1 and len(self.words) == size * carrier.itemsize


def c_arrays(text: str) -> tuple[Numbers, ...]:
    """Return all initialized arrays of a C file."""
    return tuple(_arrays(_COMMENT.sub(" ", text)))


def _arrays(text: str) -> Iterator[Numbers]:
    at = 0
    while (start := _START.search(text, at)) is not None:
        at = _end(text, start.end())
        body = _CAST.sub(" ", text[start.end() : at - 1])
        yield Numbers(start["name"] or start["std"], tuple(re.sub(r"[{},\s]+", " ", body).split()))


def _end(text: str, start: int) -> int:
    """Return the position behind the brace that closes the one before `start`."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    raise InputError("a C array has no end")


#: Digits of an integer constant, in any base, with room for leading zeros.
_DIGITS = 200


def _integer(word: str, carrier: np.dtype[Any], name: str) -> int:
    """Return an integer constant; a code of the type written without its sign is wrapped."""
    match = re.fullmatch(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uUlL]*", word)
    if match is None and word in ("true", "false"):
        return int(word == "true")
    if match is None:
        raise InputError(f"{word!r} is not an integer", name=name)
    digits = match[2]
    if len(digits) > _DIGITS:
        raise InputError(f"{word[:_DIGITS]}... is outside {carrier}", name=name)
    octal = len(digits) > 1 and digits.isdecimal() and digits[0] == "0"
    value = int(digits, 8 if octal else 0) * (-1 if match[1] == "-" else 1)
    bits = 8 * carrier.itemsize
    lowest = 0 if carrier.kind in "ub" else -(1 << (bits - 1))
    if not lowest <= value < 1 << bits:
        raise InputError(f"{word} is outside {carrier}", name=name)
    return value - (1 << bits) if carrier.kind == "i" and value >= 1 << (bits - 1) else value


def real_of(word: str, name: str) -> float:
    """Return the value of a floating constant of C, an integer constant in hexadecimal or a word such as `nan`."""
    bare = word.lstrip("+-")
    sign = -1.0 if word.startswith("-") else 1.0
    if bare.upper() in _NOT_FINITE:
        return sign * _NOT_FINITE[bare.upper()]
    try:
        if bare[:2].lower() == "0x":
            return sign * float.fromhex(bare if "p" not in bare.lower() else bare.rstrip("fFlL"))
        return sign * float(bare.rstrip("fFlL"))
    except ValueError as error:
        raise InputError(f"{word!r} is not a number", name=name) from error


def names_of(model: Model) -> dict[str, int]:
    """Return tensor indices by name and by its spelling in files; ambiguous names are left out."""
    indices_of: dict[str, set[int]] = {}
    for index, spec in enumerate(view(model).tensors):
        name = spec.name or ""
        for spelling in {name, re.sub(r"[^\w.-]", "_", name), re.sub(r"\W", "_", name)}:
            indices_of.setdefault(spelling, set()).add(index)
    return {name: next(iter(indices)) for name, indices in indices_of.items() if name and len(indices) == 1}


def index_of(model: Model, names: Mapping[str, int], key: str) -> int | None:
    """Return the tensor that an entry's key names, by name or number; None if it names none."""
    if key in names:
        return names[key]
    number = re.fullmatch(r"(?:t|tensor_?)?(\d{1,9})", key)
    index = int(number[1]) if number else -1
    return index if 0 <= index < len(view(model).tensors) else None
