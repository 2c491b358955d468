"""Children that run a real runtime, forked from one process that has imported LiteRT: a start takes 250 ms, a fork 10.

A child is the same program with the same streams and environment, in a session of its own. If a test changes the
environment, for example to show a folder of stand-ins to the child, the child is started as usual.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import runpy
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

#: An option of Linux's prctl (linux/prctl.h): children of children that ended become this process's.
_PR_SET_CHILD_SUBREAPER = 36
#: Variables that may differ from those of this process at first, and do not change what a child imports.
_VARYING = (
    "TFLQ_CHILD",
    "PYTEST_CURRENT_TEST",
    "COLUMNS",
    "TF_CPP_MIN_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
    "KMP_DUPLICATE_LIB_OK",  # threadpoolctl sets it when it is imported
)
#: Where `_execute_child` of subprocess.Popen has the ends of pipes: stdin, stdout and stderr of the child.
_STREAMS = (3, 6, 8)


def install(child: Path) -> None:
    """Let subprocess.Popen fork the processes of that program, where the system can."""
    if sys.platform == "linux":
        Forked.program, Forked.environment = [sys.executable, str(child)], _steady(os.environ)
        subprocess.Popen = Forked  # type: ignore[misc]


class _Server:
    """The process that forks."""

    def __init__(self, child: str, environment: dict[str, str]) -> None:
        self._lock = threading.Lock()
        started_in = {name: value for name, value in environment.items() if name != "TFLQ_CHILD"}
        self._link, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, child, str(theirs.fileno())]
            self._process = _Popen(command, env=started_in, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self._end)

    def _end(self) -> None:
        self._link.close()
        self._process.wait()

    def fork(self, streams: list[int], environment: dict[str, str]) -> int:
        """Return the process id of a new child of this process."""
        prctl, mark = ctypes.CDLL(None).prctl, environment.get("TFLQ_CHILD", "").encode() or b"-"
        with self._lock:
            prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._link, [mark], streams)
                return int(struct.unpack("<q", self._link.recv(8, socket.MSG_WAITALL))[0])
            finally:
                prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


_Popen = subprocess.Popen
#: By the process that they serve: a fork of the tests' process has no children of its parent's server.
_servers: dict[int, _Server] = {}


class Forked(subprocess.Popen):  # type: ignore[type-arg]
    """A process that is forked if it is the child of a runtime, and otherwise started."""

    program: ClassVar[list[str]] = []
    environment: ClassVar[dict[str, str]] = {}

    def _execute_child(self, args: Any, *others: Any) -> None:
        environment, streams = others[5], [others[6 + place] for place in _STREAMS]
        if args != self.program or min(streams) < 0 or _steady(environment) != self.environment:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        if os.getpid() not in _servers:
            _servers[os.getpid()] = _Server(self.program[1], environment)
        self.pid = _servers[os.getpid()].fork(streams, environment)
        self._child_created = True
        self._close_pipe_fds(*others[9:15])  # type: ignore[attr-defined]


def _steady(environment: Mapping[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (environment or {}).items() if name not in _VARYING}


def _serve(child: str, link: socket.socket) -> None:
    """Fork for every message, twice, so that the asking process adopts the child."""
    sys.argv, sys.path[0] = [child], child
    for module in ("tflq_drivers", "tflq_processor", "tflq_wire", "ai_edge_litert.interpreter"):
        with suppress(ImportError):
            import_module(module)
    while True:
        mark, streams, _, _ = socket.recv_fds(link, 64, 3)
        if not mark:
            return
        between = os.fork()
        if between == 0:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            _become(child, mark.decode(), streams, link, between)
        os.waitpid(between, 0)
        for stream in streams:
            os.close(stream)


def _become(child: str, mark: str, streams: list[int], link: socket.socket, between: int) -> None:
    """Answer with the process id once `between` has ended, and be the child to the end."""
    status = 1
    try:
        os.setsid()
        while os.getppid() == between:
            time.sleep(0.0005)
        link.sendall(struct.pack("<q", os.getpid()))
        link.close()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        os.environ["TFLQ_CHILD"] = mark
        runpy.run_path(child, run_name="__main__")
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
