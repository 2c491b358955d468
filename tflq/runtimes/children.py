"""Child processes that end with this one, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from tflq.errors import FileAccessError


@contextmanager
def started(command: str | Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A child process, as subprocess.Popen starts it, that has ended when the block has.

    It leads a group of its own: programs that it started and did not wait for are killed with it. Ctrl-C in a terminal
    does not reach that group, but this process, which then leaves the block.
    """
    with subprocess.Popen(command, start_new_session=os.name == "posix", **options) as child:
        try:
            yield child
        finally:
            with suppress(OSError):  # it has just ended, or did not read all that it was sent
                _kill(child)
                if child.stdin is not None:
                    child.stdin.close()


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    if os.name == "posix":
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def nameless_file() -> IO[bytes]:
    """A temporary file that is gone when the last process that has it open ends, even where that is killed.

    Raises:
        FileAccessError: There is no folder for temporary files that can be written to.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder that is removed at the end of a `with` block.

    Raises:
        FileAccessError: As nameless_file.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="tflq-")
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error
