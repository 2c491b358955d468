"""A runtime in a process of its own that runs one model, sample after sample."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agreement.devices import Device

Array = NDArray[Any]
#: Type and shape of each output.
Forms = Sequence[tuple[np.dtype[Any], tuple[int, ...]]]


class Stopped(Exception):
    """The runtime refuses the model, ended, or took too long."""


class Running:
    """A started runtime. `seconds` is the limit of loading and of one run; `spent` is the time of all runs."""

    def __init__(self, device: Device, model: Path, forms: Forms, seconds: float) -> None:
        self.device, self.spent, self._late = device, 0.0, False
        self._forms, self._seconds = forms, seconds
        self._messages = TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            device.started_with(model), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._messages
        )
        self.name = self._loaded()

    def _loaded(self) -> str:
        """Return the runtime's own name.

        Raises:
            Stopped: It refuses the model, or its outputs have other sizes.
        """
        with self._limited():
            line = self._output.readline()
        if not line:
            raise self._reason()
        about = json.loads(line)
        sizes = [dtype.itemsize * int(np.prod(shape)) for dtype, shape in self._forms]
        if about["bytes"] != sizes:
            self.close()
            raise Stopped(f"its outputs have other sizes: {about['bytes']} instead of {sizes} bytes")
        return str(about["name"])

    @property
    def _output(self) -> Any:
        return self._process.stdout

    def run(self, sample: Sequence[Array]) -> list[Array]:
        """Return the outputs for one sample.

        Raises:
            Stopped: The process ended, or took too long.
        """
        began = monotonic()
        assert self._process.stdin is not None
        with self._limited():
            try:
                self._process.stdin.write(b"".join(value.tobytes() for value in sample))
                self._process.stdin.flush()
            except BrokenPipeError:
                raise self._reason() from None
            made = [self._read(dtype, shape) for dtype, shape in self._forms]
        self.spent += monotonic() - began
        return made

    def _read(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        data = self._output.read(size := dtype.itemsize * int(np.prod(shape)))
        if len(data) != size:
            raise self._reason()
        return np.frombuffer(data, dtype).reshape(shape)

    def _reason(self) -> Stopped:
        """Return the last line that the ended process wrote, or how it ended."""
        self.close()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        self._messages.close()
        code = self._process.returncode
        if self._late:
            return Stopped(f"took longer than {self._seconds:g} s")
        return Stopped(lines[-1].strip()[:160] if lines else f"ended with exit status {code}")

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """End the process if a request takes too long."""
        timer = Timer(self._seconds, self._end)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end(self) -> None:
        self._late = True
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
