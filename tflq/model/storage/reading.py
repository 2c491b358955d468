"""Open files to read. Pipes, sockets and devices are refused: they may never end."""

from __future__ import annotations

import os
import stat
from typing import IO

from tflq.errors import FileAccessError
from tflq.model.storage.output import PathLike

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def open_file(path: PathLike | bytes) -> IO[bytes]:
    """Open a regular file.

    Raises:
        FileAccessError: It cannot be read, or is not a regular file.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise FileAccessError(os.fsdecode(path), "is a folder; name a file")
        _check_regular(path, os.stat(path).st_mode)  # before it is opened: opening a device may have effects
        file = os.fdopen(os.open(path, _FLAGS), "rb")  # O_NONBLOCK: a pipe that takes its place does not block
        try:
            _check_regular(path, os.fstat(file.fileno()).st_mode)
        except FileAccessError:
            file.close()
            raise
        return file
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(os.fsdecode(path), error.strerror or str(error)) from error
    except ValueError as error:  # a path with a null character
        raise FileAccessError(repr(path), str(error)) from error


def _check_regular(path: PathLike | bytes, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise FileAccessError(
            os.fsdecode(path), "is not a regular file: copy it to one, or give - and pipe it to stdin"
        )


def read_bytes(path: PathLike) -> bytes:
    """Return the content of a regular file. Raise as `open_file`."""
    with open_file(path) as file:
        try:
            return file.read()
        except OSError as error:
            raise FileAccessError(path, error.strerror or str(error)) from error
