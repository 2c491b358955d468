"""Child processes that end with this one, whatever ends it."""

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

#: Marks the descendants of a child, each child's with another value.
_FAMILY = "TFLQ_CHILD"
#: How often descendants are looked for, since they may start others.
_ROUNDS = 20


@contextmanager
def started(command: str | Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a child process, as subprocess.Popen starts it, that has ended when the block has.

    It leads a group of its own: programs that it started and did not wait for are killed with it. On Linux that holds
    for programs that left the group, too: they are known by a variable in their environment. Ctrl-C in a terminal does
    not reach that group, but this process, which then leaves the block.
    """
    token = secrets.token_hex(16)
    options["env"] = {**(options.get("env") or os.environ), _FAMILY: token}
    with subprocess.Popen(command, start_new_session=os.name == "posix", **options) as child:
        try:
            yield child
        finally:
            with suppress(OSError):  # it has just ended, or did not read all that it was sent
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
    """Kill the processes whose environment holds the mark, and those that they start meanwhile."""
    for _ in range(_ROUNDS):
        family = [pid for pid in _pids() if pid != os.getpid() and mark in _environment(pid).split(b"\0")]
        for pid in family:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not family:
            return


def _pids() -> list[int]:
    """Return the ids of all processes, where the system has them in /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """Return the environment that a process began with; nothing if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def nameless_file() -> IO[bytes]:
    """Return a temporary file that is gone when the last process that has it open ends, even where that is killed.

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
        FileAccessError: As nameless_file.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="tflq-")
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error
