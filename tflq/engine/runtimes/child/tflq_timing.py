"""Time a runtime on commands: load, invoke once, then bursts of invokes. Part of the program in this folder.

The answer to each command is a line of JSON on stdout, and so is each stage before the first one.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from time import perf_counter
from typing import Any, Dict, List  # noqa: UP035

import numpy as np
from tflq_drivers import adapter_of  # type: ignore[import-not-found]
from tflq_processor import described  # type: ignore[import-not-found]
from tflq_wire import pack, unpack  # type: ignore[import-not-found]

#: Seconds of the first invoke of a burst from which it counts: cold caches matter less than another invoke would take.
LONG = 0.05
#: Most invokes of a burst.
MOST = 200


def serve(job: Any, archive: Any, answer: Any) -> None:
    """Load the model and run each step once, then do what commands ask for until the parent closes the pipe."""
    line = AnswerLine(answer)
    try:
        sys.path[:0] = job["path"]
        start = perf_counter()
        load, distributions = adapter_of(job)
        line.stage("importing the runtime")
        try:
            runtime = load()
        except ImportError as error:
            line(missing=str(error))
            return
        imported = perf_counter() - start
        contestant = TimedRuntime(runtime, job, archive, line)
        line(imported=imported, **contestant.begin(), **described(distributions))
        for words in iter(sys.stdin.buffer.readline, b""):
            command = json.loads(words)
            line(**getattr(contestant, command.pop("do"))(**command))
    except Exception as error:
        line(failed=f"{type(error).__name__}: {error}", kind=type(error).__name__, facts=facts_of(error))


class AnswerLine:
    """A writer of answers."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __call__(self, **answer: Any) -> None:
        """Write one answer."""
        self.file.write(json.dumps(answer).encode() + b"\n")
        self.file.flush()

    def stage(self, doing: str) -> None:
        """Write the present stage, in case the runtime aborts."""
        self(stage=doing)


class TimedRuntime:
    """A runtime with its model and its steps."""

    def __init__(self, runtime: Any, job: Any, archive: Any, line: AnswerLine) -> None:
        self.runtime, self.job, self.line = runtime, job, line
        self.steps = [
            (step["signature"], {name: unpack(f"s{k}_{i}", archive) for i, name in enumerate(step["inputs"])})
            for k, step in enumerate(job["steps"])
        ]
        self.calls: List[Any] = []  # noqa: UP006
        self.turn = 0

    def begin(self) -> Dict[str, Any]:  # noqa: UP006
        """Load the model and run every step once; write all outputs to a file."""
        self.line.stage("loading")
        start = perf_counter()
        self.driver = self.runtime(self.job["model"], self.job)
        loaded = perf_counter()
        outputs: Dict[str, Any] = {}  # noqa: UP006
        first, names = 0.0, []
        for k, (signature, inputs) in enumerate(self.steps):
            values = self.driver.step(signature, inputs, self.line.stage)
            first = first or perf_counter() - loaded
            names.append([name for name, value in values.items() if value is not None])
            for i, name in enumerate(names[-1]):
                outputs.update(pack(f"o{k}_{i}", np.asarray(values[name])))
        np.savez(self.job["outputs"], **outputs)
        self.calls = [self.driver.bound(signature, inputs, quiet) for signature, inputs in self.steps]
        return {"loaded": loaded - start, "first": first, "names": names, "delegated": [self.driver.delegated()]}

    def burst(self, seconds: float) -> Dict[str, Any]:  # noqa: UP006
        """Invoke for `seconds`, on the steps' inputs in turn; return the seconds of each invoke that counts.

        The first runs with the caches that others left, and counts only if it is long.
        """
        times: List[float] = []  # noqa: UP006
        end = perf_counter() + seconds
        self.invoke()
        if self.latest >= LONG:
            times.append(self.latest)
        while not times or (perf_counter() < end and len(times) < MOST):
            self.invoke()
            times.append(self.latest)
        return {"seconds": times, "peak": peak_bytes()}

    def invoke(self) -> None:
        """Set the inputs of the next step and time its invoke."""
        give, call = self.calls[self.turn % len(self.calls)]
        self.turn += 1
        give()
        start = perf_counter()
        call()
        self.latest = perf_counter() - start

    def operators(self, seconds: float) -> Dict[str, Any]:  # noqa: UP006
        """Time the operators of tflq: see tflq.engine.api.interpreter."""
        give, _ = self.calls[0]
        give()
        times = import_module("tflq.engine.api.interpreter").operator_times
        return {"operators": times(self.driver.interpreter, self.job["subgraph"], seconds)}


def quiet(doing: str) -> None:
    """Ignore a stage."""


def facts_of(error: Exception) -> Dict[str, Any]:  # noqa: UP006
    """Return the fields of an error that JSON can hold."""
    plain = (bool, int, float, str, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in vars(error).items()}


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far, 0 if it is unknown.

    On Linux, getrusage includes the memory of the process that started this one.
    """
    try:
        with open(f"/proc/{os.getpid()}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
