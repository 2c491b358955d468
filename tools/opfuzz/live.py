"""LiteRT in a child process for many cases; if a case ends the process, that is the case's result."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from opfuzz.case import Array, Case
from opfuzz.worker import serve

SECONDS = 60.0  # for one case


@dataclass(frozen=True)
class Ran:
    """The results of an interpreter: `outputs[sample][output]`."""

    outputs: list[list[Array]]
    resolver: str = ""


@dataclass(frozen=True)
class Refused:
    """An interpreter raised its own kind of error.

    `undefined`: it reports that there is no defined result. `failed`: an operator raised at run time, which is right
    only if the other interpreter also refuses.
    """

    reason: str
    undefined: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Ended:
    """The process ended or hung, or an error other than a refusal occurred."""

    reason: str


Result = Ran | Refused | Ended


class Live:
    """LiteRT, out of this process."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["opfuzz.worker", "ai_edge_litert.interpreter"])
        self._process: Any = None
        self._connection: Any = None

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, case: Case) -> Result:
        """Run one case."""
        if self._process is None:
            self._start()
        self._connection.send((case.model(), case.samples))
        try:
            if not self._connection.poll(SECONDS):
                self.close()
                return Ended(f"no end after {SECONDS:g} s")
            kind, resolver, got = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            return Ended(signal.Signals(-code).name if code < 0 else f"exit status {code}")
        return Ran(got, resolver) if kind == "ran" else Refused(got)

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._connection.close()
            if self._process.pid is not None:
                self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
