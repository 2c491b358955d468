"""Machine code that comes with tflq: one file for each level of processors, made by `tools/ship_code.py`.

A file begins with the length and the digest of its index, which maps names to places in the rest and the digests of
what is there. Names contain a digest of the source, so code of another version of tflq is never found. Damaged code is
not returned: it is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tflq.engine.jit.targets import levels

_HEAD = struct.Struct("<8sQ32s")
_MAGIC = b"tflqcod2"
#: A place in the rest of the file: offset, size, and digest of the content.
_Place = tuple[int, int, str]


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
            return _entry(content, start, index[name])
    return None


def digest() -> str:
    """Return the beginning of the SHA-256 of the machine code for this processor; empty if there is none."""
    return next((hashlib.sha256(content).hexdigest()[:12] for content, _, _ in _packs()), "")


def pack(entries: Mapping[str, bytes]) -> bytes:
    """Return the content of a file of entries by name."""
    index, at = {}, 0
    for name, content in sorted(entries.items()):
        index[name] = (at, len(content), _digest(content))
        at += len(content)
    head = json.dumps(index).encode()
    return (
        _HEAD.pack(_MAGIC, len(head), hashlib.sha256(head).digest())
        + head
        + b"".join(content for _, content in sorted(entries.items()))
    )


def unpacked(content: bytes) -> dict[str, bytes]:
    """Return the entries of a file.

    Raises:
        ValueError: It is no file of entries, or one is damaged.
    """
    start, index = _index(content)
    entries = {name: _entry(content, start, place) for name, place in index.items()}
    damaged = [name for name, entry in entries.items() if entry is None]
    if damaged:
        raise ValueError(f"machine code is damaged: {damaged[0]}")
    return {name: entry for name, entry in entries.items() if entry is not None}


def _entry(content: bytes | memoryview, start: int, place: _Place) -> bytes | None:
    """Return the content at a place; None if its digest differs."""
    at, size, digest = place
    found = bytes(content[start + at : start + at + size])
    return found if _digest(found) == digest else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def folder() -> Path:
    """Return where the files are."""
    return Path(__file__).resolve().parents[2] / "machine_code"


@cache
def _packs() -> tuple[tuple[memoryview, int, Mapping[str, _Place]], ...]:
    """Return (content, start of the entries, index) of the most capable level for which there is a file."""
    for level in levels():
        try:
            with (folder() / f"{level.name}.code").open("rb") as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return ((content, *_index(content)),)
        except (OSError, ValueError):
            continue
    return ()


def _index(content: bytes | memoryview) -> tuple[int, dict[str, _Place]]:
    """Return where the entries begin, and each one's place after that."""
    try:
        magic, size, digest = _HEAD.unpack_from(content)
        head = bytes(content[_HEAD.size : _HEAD.size + size])
        if magic != _MAGIC or hashlib.sha256(head).digest() != digest:
            raise ValueError("no file of machine code")
        index = json.loads(head)
        if _HEAD.size + size + sum(length for _, length, _ in index.values()) != len(content):
            raise ValueError("a file of machine code that is cut")
        return _HEAD.size + size, index
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"no file of machine code: {error}") from error
