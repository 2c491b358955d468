"""A runtime in a process, and perhaps a Python, of its own: an abort ends that process and is the case's result."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opfuzz.case import Array, Case
from opfuzz.remote_worker import packed, receive, send, unpacked

WORKER = Path(__file__).with_name("remote_worker.py")


class Remote:
    """A runtime that `command`, a Python's command line, has installed as `module`.

    `resolver` is the name in its OpResolverType; empty for releases that have none.
    """

    def __init__(self, command: Sequence[str], module: str, resolver: str = "") -> None:
        self._command = [*command, str(WORKER), module, *([resolver] if resolver else [])]
        self._start()

    def _start(self) -> None:
        """EOFError where the runtime is not there."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
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
        """Outputs of every sample; why, where the runtime refuses; None where it ends."""
        try:
            send(self._input, (case.model(), [[packed(value) for value in s] for s in case.samples]))
            samples = receive(self._output)
        except (EOFError, BrokenPipeError):
            self.close()
            self._start()
            return None
        return samples if isinstance(samples, str) else [[unpacked(parts) for parts in sample] for sample in samples]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
