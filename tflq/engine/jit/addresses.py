"""Addresses of functions that are written as LLVM code: found with tflq, on disk, or emitted.

Compiled code that calls one of many such functions takes its address as an argument, a number. So it is compiled once
for all of them, and a function that no model needed before costs milliseconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tflq.engine.jit import shipped
from tflq.engine.jit.code_cache import code_folder
from tflq.engine.jit.compilations import listener
from tflq.engine.jit.images import Code, load, unpacked
from tflq.engine.jit.machines import NotBuildable
from tflq.engine.jit.targets import stamp
from tflq.interrupts import uninterrupted

if TYPE_CHECKING:
    from tflq.engine.jit.emitting import Write

#: Held while a function is emitted or loaded: once, no matter how many threads ask for it.
_MAKING = threading.RLock()
#: Addresses by name and digest. Loaded code stays as long as the process.
_KNOWN: dict[tuple[str, str], int] = {}


class Unavailable(Exception):
    """There is no address: the system has no memory that may be executed, or no function that the code calls."""


class Addresses:
    """How addresses are found; `collecting` replaces it."""

    #: Makes the address of (name, write) if code is only collected.
    instead: Callable[[str, Write], int] | None = None


def address_of(name: str, digest: str, write: Write) -> int:
    """Return the address of the function that `write` writes; name and digest decide its code.

    Raises:
        Unavailable: See there.
    """
    key = name, digest
    with _MAKING:
        if key not in _KNOWN:
            with uninterrupted():
                _KNOWN[key] = _found(name, digest, write)
        return _KNOWN[key]


def _found(name: str, digest: str, write: Write) -> int:
    if Addresses.instead is not None:
        return Addresses.instead(shipped.name_of(name, digest), write)
    try:
        return load(_code(name, digest, write).body)
    except (OSError, NotBuildable) as error:
        logging.getLogger("tflq").warning("tflq: machine code cannot be loaded: %s", error)
        raise Unavailable(str(error)) from error


def _code(name: str, digest: str, write: Write) -> Code:
    code = _ship(shipped.name_of(name, digest))
    if code is None:
        file = f"{shipped.name_of(name, digest, stamp())}.code"
        code = _kept(file)
        if code is None:
            code = _emit(write)
            code_folder().write(file, code.packed())
    return code


def _ship(name: str) -> Code | None:
    content = shipped.read(name) if shipped.is_here() else None
    with suppress(ValueError):
        return None if content is None else unpacked(content)
    return None


def _kept(file: str) -> Code | None:
    """Return what an earlier process kept; a file that is no machine code is removed."""
    content = code_folder().read(file)
    try:
        return None if content is None else unpacked(content)
    except ValueError:
        code_folder().remove(file)
        return None


def _emit(write: Write) -> Code:
    from tflq.engine.jit.emitting import emit

    heard = listener()
    if heard is not None:
        heard.begin()
    try:
        return emit(write)
    finally:
        if heard is not None:
            heard.end()
