"""Child processes that end with this one, for any reason."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from tflq.errors import FileAccessError

#: Environment variable that marks the descendants of a child; each child has another value.
_FAMILY = "TFLQ_CHILD"
#: Number of searches for descendants, since they may start others.
_ROUNDS = 20


@contextmanager
def started(command: str | Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a child process, as subprocess.Popen starts it, that ends with the block.

    It leads a group of its own: programs that it started and did not wait for are killed with it. On Linux that
    includes programs that left the group: they are recognized by an environment variable. Ctrl-C in a terminal does not
    reach that group, but this process, which then leaves the block.
    """
    token = secrets.token_hex(16)
    options["env"] = {**(options.get("env") or os.environ), _FAMILY: token}
    with subprocess.Popen(command, start_new_session=os.name == "posix", **options) as child:
        try:
            yield child
        finally:
            with suppress(OSError):  # it has just ended, or did not read all of its input
                _kill(child)
                if child.stdin is not None:
                    child.stdin.close()
            _kill_family(f"{_FAMILY}={token}".encode())


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    if os.name == "posix":
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def _kill_family(mark: bytes) -> None:
    """Kill the processes whose environment holds the mark, and those that they start in the meantime."""
    for _ in range(_ROUNDS):
        family = [pid for pid in _pids() if pid != os.getpid() and mark in _environment(pid).split(b"\0")]
        for pid in family:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not family:
            return


def _pids() -> list[int]:
    """Return the ids of all processes, if the system has /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """Return the environment at the start of a process; nothing if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def nameless_file() -> IO[bytes]:
    """Return a temporary file that disappears with the last process that has it open, even if that is killed.

    Raises:
        FileAccessError: There is no folder for temporary files that can be written to.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder that is removed at the end of a `with` block.

    Raises:
        FileAccessError: See nameless_file.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="tflq-")
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error
