"""A runtime in a process, and perhaps a Python, of its own: an abort ends that process and is the case's result."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from opfuzz.case import Array, Case
from opfuzz.remote_worker import packed, receive, send, unpacked

WORKER = Path(__file__).with_name("remote_worker.py")


class Remote:
    """A runtime: `command` starts a Python that has it as `module`.

    `resolver` is the name in its OpResolverType; empty for releases that have none. `seconds` is the limit of a
    request, after which the process is ended (0: no limit). `environment` holds its variables; by default, this one's.
    """

    def __init__(
        self,
        command: Sequence[str],
        module: str,
        resolver: str = "",
        seconds: float = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = tuple(command)
        self._command = [*command, str(WORKER), module, *([resolver] if resolver else [])]
        self._seconds, self._environment = seconds, environment
        self._start()

    def _start(self) -> None:
        """Start the process; raise EOFError if the runtime is missing."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=None if self._environment is None else dict(self._environment),
        )
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

    def run(self, case: Case) -> list[list[Array]] | str | None:
        """Return the outputs of a drawn case; see `outputs`."""
        return self.outputs(case.model(), case.samples)

    def outputs(self, model: bytes, samples: Sequence[Sequence[Array]]) -> list[list[Array]] | str | None:
        """Return the outputs of every sample, from one interpreter.

        The result is the reason if the runtime refuses, and None if it ends.
        """
        try:
            with self._limited():
                send(self._input, (model, [[packed(value) for value in sample] for sample in samples]))
                answered = receive(self._output)
        except (EOFError, BrokenPipeError):
            self.close()
            self._start()
            return None
        return answered if isinstance(answered, str) else [[unpacked(parts) for parts in made] for made in answered]

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """End the process if a request takes too long."""
        timer = Timer(self._seconds, self._process.kill)
        if self._seconds:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
