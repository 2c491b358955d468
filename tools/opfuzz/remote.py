"""A runtime in a process, and perhaps a Python, of its own: an abort ends that process and is the case's result."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any

from opfuzz.case import Array, Case
from opfuzz.remote_worker import packed, receive, send, unpacked

WORKER = Path(__file__).with_name("remote_worker.py")
#: The resolver of the reference kernels, and the one for operators that it lacks.
REFERENCE, FULL = "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


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


class Remote:
    """A runtime: `command` starts a Python that has it as `module`.

    `resolver` is the name in its OpResolverType, empty for releases that have none; `fallback` is the one for models
    with operators that the first lacks. `seconds` is the limit of a request, after which the process is ended (0: no
    limit), `memory` the limit of its address space in bytes. `environment` holds its variables; by default, this one's.
    """

    def __init__(
        self,
        command: Sequence[str],
        module: str,
        resolver: str = "",
        seconds: float = 0,
        environment: Mapping[str, str] | None = None,
        fallback: str = "",
        memory: int = 0,
    ) -> None:
        self.command = tuple(command)
        self._command = [*command, str(WORKER), module, *filter(None, (resolver, fallback))]
        self._seconds, self._memory, self._is_late = seconds, memory, False
        self._environment = None if environment is None else dict(environment)
        self._start()

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        """Start the process; raise EOFError if the runtime is missing."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        if self._memory:
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (self._memory, self._memory))
        try:
            receive(self._output)
        except EOFError:
            self.close()
            raise

    @property
    def _input(self) -> Any:
        return self._process.stdin

    @property
    def _output(self) -> Any:
        return self._process.stdout

    def run(self, case: Case) -> Result:
        """Run a drawn case; see `outputs`."""
        return self.outputs(case.model(), case.samples)

    def outputs(self, model: bytes, samples: Sequence[Sequence[Array]]) -> Result:
        """Run every sample in one interpreter."""
        try:
            with self._limited():
                send(self._input, (model, [[packed(value) for value in sample] for sample in samples]))
                resolver, answered = receive(self._output)
        except (EOFError, BrokenPipeError):
            ended = Ended(self._reason())
            self.close()
            self._start()
            return ended
        if isinstance(answered, str):
            return Refused(answered)
        return Ran([[unpacked(parts) for parts in made] for made in answered], resolver)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """End the process if a request takes too long."""
        timer = Timer(self._seconds, self._end_late)
        if self._seconds:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _reason(self) -> str:
        """Return how the process ended."""
        code, late, self._is_late = self._process.wait(), self._is_late, False
        if late:
            return f"no end after {self._seconds:g} s"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def litert() -> Remote:
    """Return this Python's LiteRT with its reference kernels, limited in time and memory."""
    return Remote([sys.executable], "ai_edge_litert.interpreter", REFERENCE, 60.0, fallback=FULL, memory=6 << 30)
