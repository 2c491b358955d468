"""Machine code that comes with tflq: one file for each level of processors, made by `tools/ship_code.py`.

A file begins with the length of its index, which maps names to places in the rest. Names contain a digest of the
source, so code of another version of tflq is never found.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tflq.jit.targets import levels

_LENGTH = struct.Struct("<8sQ")
_MAGIC = b"tflqcode"


def is_here() -> bool:
    """Return whether there is machine code for this processor."""
    return bool(_packs())


def name_of(function: str, *parts: str) -> str:
    """Return the name of machine code: the function's, and a digest of what decides it: its source, the types of its
    arguments, and the processor unless a file is for one level."""
    return f"{function}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def read(name: str) -> bytes | None:
    """Return the machine code of a name for this processor; None if there is none."""
    for content, start, index in _packs():
        if name in index:
            at, size = index[name]
            return bytes(content[start + at : start + at + size])
    return None


def pack(entries: Mapping[str, bytes]) -> bytes:
    """Return the content of a file of entries by name."""
    index, at = {}, 0
    for name, content in sorted(entries.items()):
        index[name] = (at, len(content))
        at += len(content)
    head = json.dumps(index).encode()
    return _LENGTH.pack(_MAGIC, len(head)) + head + b"".join(content for _, content in sorted(entries.items()))


def unpacked(content: bytes) -> dict[str, bytes]:
    """Return the entries of a file.

    Raises:
        ValueError: It is no file of entries.
    """
    start, index = _index(content)
    return {name: content[start + at : start + at + size] for name, (at, size) in index.items()}


def folder() -> Path:
    """Return where the files are."""
    return Path(__file__).resolve().parents[1] / "machine_code"


@cache
def _packs() -> tuple[tuple[memoryview, int, Mapping[str, tuple[int, int]]], ...]:
    """Return (content, start of the entries, index) of the most capable level for which there is a file."""
    for level in levels():
        try:
            with (folder() / f"{level.name}.code").open("rb") as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return ((content, *_index(content)),)
        except (OSError, ValueError):
            continue
    return ()


def _index(content: bytes | memoryview) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return where the entries begin, and each one's place and size after that."""
    try:
        magic, size = _LENGTH.unpack_from(content)
        if magic != _MAGIC:
            raise ValueError("no file of machine code")
        index = json.loads(bytes(content[_LENGTH.size : _LENGTH.size + size]))
        if _LENGTH.size + size + sum(length for _, length in index.values()) != len(content):
            raise ValueError("a file of machine code that is cut")
        return _LENGTH.size + size, index
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"no file of machine code: {error}") from error
