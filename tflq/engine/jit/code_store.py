"""Machine code on disk and in the wheel.

Machine code on disk, kept from one process to the next.

Loading an entry runs the code in it, so only this user or root may have written it: the folder and each entry belong to
one of them, no other user can write to either, and neither is a symbolic link. An entry begins with a digest of its
name and content. An entry that does not match its digest is damaged: it is removed, and the function is compiled again.
An entry is written under another name and renamed, so that no reader sees a part of it.

If the folder cannot be used or written to, functions are compiled without it, and the logger `tflq` warns once per
process.

Machine code that comes with tflq: one file for each level of processors, made by `tools/ship_code.py`.

A file begins with the length and the digest of its index, which maps names to places in the rest and the digests of
what is there. Names contain a digest of the source, so code of another version of tflq is never found. Damaged code is
not returned: it is compiled again.

Where machine code comes from: with tflq, from disk, or made now and kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import secrets
import stat
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar

from tflq.engine.jit.compiled import listener
from tflq.engine.jit.images import MachineCode, unpacked
from tflq.engine.jit.processors import ProcessorLevel, levels, stamp

_DIGEST_SIZE = hashlib.sha256().digest_size
#: Only this user may enter the folder, or read an entry.
_FOLDER_MODE, _ENTRY_MODE = 0o700, 0o600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: The prefix of names of entries while they are written.
_BESIDE = ".new-"
#: Flags of os.open that some systems lack.
_NO_LINK, _BINARY = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a writer would never end


class CodeFolder:
    """Entries of bytes by name, in a folder that only this user or root can write to.

    Args:
        path: The folder; it is created if it does not exist.
        refusal: Why there is no folder to use, or "".
    """

    def __init__(self, path: Path, refusal: str = "") -> None:
        self.path = path
        self._readable = self._writable = True
        self._has_warned = False
        refusal = refusal or _refusal(path)
        if refusal:
            self._readable = False
            self._stop_writing(refusal)

    def read(self, name: str) -> bytes | None:
        """Return the content of an entry; None if there is no trusted one. A damaged entry is removed."""
        if not self._readable:
            return None
        try:
            with open(os.open(self.path / name, os.O_RDONLY | _NO_LINK | _BINARY | _NO_WAIT), "rb") as file:
                status = os.fstat(file.fileno())
                stored = file.read() if stat.S_ISREG(status.st_mode) and _is_trusted(status) else b""
        except FileNotFoundError:
            return None
        except OSError:
            stored = b""
        content = stored[_DIGEST_SIZE:]
        if stored[:_DIGEST_SIZE] == _digest(name, content):
            return content
        self.remove(name)
        return None

    def write(self, name: str, content: bytes) -> None:
        """Store an entry, unless there is one of that name. After a failure, this process writes no more entries."""
        if not self._writable:
            return
        if os.path.lexists(self.path / name):  # another process was faster
            return
        beside = f"{_BESIDE}{secrets.token_hex(8)}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
            with open(os.open(self.path / beside, flags, _ENTRY_MODE), "wb") as file:
                file.write(_digest(name, content) + content)
            os.replace(self.path / beside, self.path / name)
        except BaseException as error:
            self.remove(beside)
            if not isinstance(error, OSError):
                raise
            self._stop_writing(f"{self.path} cannot be written to ({error.strerror})")

    def remove(self, name: str) -> None:
        """Remove an entry, if that is possible."""
        with suppress(OSError):
            (self.path / name).unlink()

    def _stop_writing(self, reason: str) -> None:
        self._writable = False
        if not self._has_warned:
            self._has_warned = True
            advice = "set NUMBA_CACHE_DIR to a folder that only you can write to"
            logging.getLogger("tflq").warning("tflq: machine code is not kept: %s; %s", reason, advice)


@cache
def code_folder() -> CodeFolder:
    """Return the folder of this process: `tflq` in NUMBA_CACHE_DIR, or in the user's folder of caches."""
    try:
        return CodeFolder(_caches(os.environ) / "tflq" / "machine-code")
    except (RuntimeError, FileNotFoundError):
        return CodeFolder(Path(), "there is no home folder")


def _caches(environment: Mapping[str, str]) -> Path:
    """Return the folder of caches: NUMBA_CACHE_DIR, or the system's default.

    Raises:
        RuntimeError, FileNotFoundError: The user has no home folder.
    """
    if chosen := environment.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute()
    if os.name == "nt" and (local := environment.get("LOCALAPPDATA")):
        return Path(local)
    # Freedesktop's XDG Base Directory Specification 0.8: relative paths are to be ignored.
    if os.path.isabs(chosen := environment.get("XDG_CACHE_HOME", "")):
        return Path(chosen)
    return Path.home().resolve(strict=True) / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def _refusal(path: Path) -> str:
    """Return why entries cannot be read from this folder, or ""; create the folder if it does not exist."""
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                folder.mkdir(_FOLDER_MODE, exist_ok=True)
        status, above = path.lstat(), [folder.stat() for folder in path.resolve().parents]
    except OSError as error:
        return f"{path} cannot be created ({error.strerror})"
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is a symbolic link"
    if not _is_trusted(status):
        return f"{path} belongs to another user, or others can write to it"
    # A user who can write to a parent folder can remove this one, but cannot replace it by one that belongs to this
    # user. So a parent that the user's group can write to is accepted; one that everybody can write to is a mistake.
    if any(folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX for folder in above):
        return f"everybody can write to a folder above {path}"
    return ""


def _is_trusted(status: os.stat_result) -> bool:
    """Return whether only this user or root can write to it. On Windows the status does not contain that."""
    if os.name == "nt":
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE_BY_OTHERS


def _digest(name: str, content: bytes) -> bytes:
    """Return the digest that an entry begins with."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


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
        index[name] = (at, len(content), _shipped_digest(content))
        at += len(content)
    head = json.dumps(index).encode()
    return (
        _HEAD.pack(_MAGIC, len(head), hashlib.sha256(head).digest())
        + head
        + b"".join(content for _, content in sorted(entries.items()))
    )


def shipped_unpacked(content: bytes) -> dict[str, bytes]:
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
    return found if _shipped_digest(found) == digest else None


def _shipped_digest(content: bytes) -> str:
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


#: Held while machine code is made or loaded: once for a function, no matter how many threads ask for it.
MAKING = threading.RLock()
#: Makes the code of a function, for the processor at hand or for another level.
Make = Callable[[ProcessorLevel | None], MachineCode]


class Collecting:
    """The collector of a process that makes code for a level of processors (tflq/engine/jit/building.py)."""

    #: Returns the code for (name, make, whether it is written rather than compiled) in place of `machine_code`.
    collector: ClassVar[Callable[[str, Make, bool], MachineCode] | None] = None


def machine_code(
    name: str, origin: Callable[[], str], digest: Callable[[], str], types: Sequence[str], make: Make, is_written: bool
) -> MachineCode:
    """Return the code of a function: shipped under the digest `origin` of its source, else on disk under `digest`,
    else made, with the listener of compilations notified, and kept.

    Raises:
        NotBuildable: It cannot be made.
    """
    if Collecting.collector is not None:
        return Collecting.collector(name_of(name, origin(), *types), make, is_written)
    code = _ship(name_of(name, origin(), *types)) if is_here() else None
    if code is None:
        file = f"{name_of(name, digest(), *types, stamp())}.code"
        code = _kept(file)
        if code is None:
            code = _made(make)
            code_folder().write(file, code.packed())
    return code


def _ship(name: str) -> MachineCode | None:
    content = read(name)
    with suppress(ValueError):
        return None if content is None else unpacked(content)
    return None


def _kept(file: str) -> MachineCode | None:
    """Return what an earlier process kept; a file that is no machine code is removed."""
    content = code_folder().read(file)
    try:
        return None if content is None else unpacked(content)
    except ValueError:
        code_folder().remove(file)
        return None


def _made(make: Make) -> MachineCode:
    heard = listener()
    if heard is not None:
        heard.begin()
    try:
        return make(None)
    finally:
        if heard is not None:
            heard.end()
