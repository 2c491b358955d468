"""Machine code on disk, kept from one process to the next.

Loading an entry runs the code in it, so only this user or root may have written it: the folder and each entry belong to
one of them, no other user can write to either, and neither is a symbolic link. An entry begins with a digest of its
name and content. An entry that does not match its digest is damaged: it is removed, and the function is compiled again.
An entry is written under another name and renamed, so that no reader sees a part of it.

If the folder cannot be used or written to, functions are compiled without it, and the logger `tflq` warns once per
process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

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
