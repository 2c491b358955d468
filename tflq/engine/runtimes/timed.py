"""A runtime, or tflq itself, in a child process that stays and is timed turn by turn."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any

import numpy as np

from tflq import errors
from tflq.engine.runtimes.process import CHILD, ProcessRuntime, feed, how_it_ended, last_words, nameless_file, started
from tflq.engine.runtimes.runtime import Description, Invocation, pack, unpack
from tflq.errors import RuntimeFailed, RuntimeMissing
from tflq.typing import Array

#: Environment variables that bound the threads of libraries.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class TimedJob:
    """The work of all contestants: a model's file, and steps whose inputs take turns. `subgraph` is the one they run.

    `folder` is for their outputs; `limits` are those of tflq on memory, in bytes, and on work.
    """

    model: str
    steps: Sequence[Invocation]
    subgraph: int
    folder: Path
    limits: tuple[int, int]


@dataclass(slots=True, eq=False)
class Contestant:
    """A child process that has loaded the model and has run every step once.

    `outputs` are those of each step, by name; None for a missing value. Seconds are those of importing, of loading the
    model, and of the first run of the first step with the allocation of its tensors.
    """

    name: str
    description: Description
    imported: float
    loaded: float
    first: float
    outputs: tuple[Mapping[str, Array], ...]
    _ask: Any = field(repr=False)

    def burst(self, seconds: float) -> tuple[list[float], int]:
        """Return the seconds of each invoke of a burst, and the largest resident memory so far, in bytes.

        Raises:
            RuntimeFailed: The process ended, or gave no answer in time.
        """
        answer = self._ask({"do": "burst", "seconds": seconds})
        return answer["seconds"], answer["peak"]

    def operators(self, seconds: float) -> list[tuple[int, float]]:
        """Return operators of tflq with the median of their seconds. Raises as `burst`."""
        return [(index, value) for index, value in self._ask({"do": "operators", "seconds": seconds})["operators"]]


def tflq_contestant(profile: str, timeout: float) -> ProcessRuntime:
    """Return tflq under a profile as a runtime in a process of its own."""
    return ProcessRuntime(profile, "tflq", "tflq", profile, timeout=timeout)


@contextmanager
def contestant(runtime: ProcessRuntime, job: TimedJob) -> Iterator[Contestant]:
    """Yield a contestant that is ready; it ends with the block.

    Raises:
        RuntimeMissing: The runtime is not installed.
        RuntimeFailed: It refused the model, raised, aborted or timed out.
        TflqError: tflq refused the model.
    """
    python = shutil.which(runtime.executable)
    if python is None:
        raise RuntimeMissing(runtime.name, f"no Python at {runtime.python}")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    environment |= dict.fromkeys(_THREADS, str(runtime.threads))
    with ExitStack() as stack:
        file, printed = stack.enter_context(nameless_file()), stack.enter_context(nameless_file())
        _write_job(file, runtime, job)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": printed}
        try:
            child = stack.enter_context(started([python, str(CHILD)], env=environment, **pipes))
        except OSError as error:
            raise RuntimeMissing(runtime.name, f"cannot start {python}: {error.strerror}") from error
        talk = _Talk(runtime, child, printed)
        Thread(target=feed, args=(child.stdin, file), daemon=True).start()
        yield _ready(runtime, talk, job)


def _write_job(file: IO[bytes], runtime: ProcessRuntime, job: TimedJob) -> None:
    memory, work = job.limits
    own = {"profile": runtime.resolver, "memory_limit": memory, "work_limit": work}
    described = {
        "timed": True,
        "adapter": runtime.adapter,
        "resolver": runtime.resolver,
        "settings": runtime.all_settings,
        "packages": runtime.packages,
        "options": own,
        "path": [str(Path(errors.__file__).parents[1])] if runtime.adapter == "tflq" else [],
        "threads": runtime.threads,
        "model": job.model,
        "subgraph": job.subgraph,
        "steps": [{"signature": step.signature, "inputs": list(step.inputs)} for step in job.steps],
        "outputs": str(_outputs(job, runtime)),
    }
    entries = {"job": np.frombuffer(json.dumps(described).encode(), np.uint8)}
    for k, step in enumerate(job.steps):
        for i, value in enumerate(step.inputs.values()):
            entries |= pack(f"s{k}_{i}", value)
    np.savez(file, **entries)  # type: ignore[arg-type]


def _outputs(job: TimedJob, runtime: ProcessRuntime) -> Path:
    return job.folder / f"{runtime.adapter} {Path(runtime.name).name}.npz"


def _ready(runtime: ProcessRuntime, talk: _Talk, job: TimedJob) -> Contestant:
    answer = talk.answer()
    with np.load(_outputs(job, runtime), allow_pickle=False) as archive:
        entries = dict(archive)
    outputs = tuple(
        {name: value for i, name in enumerate(names) if (value := unpack(f"o{k}_{i}", entries)) is not None}
        for k, names in enumerate(answer["names"])
    )
    description = runtime.described(answer)
    return Contestant(
        runtime.name, description, answer["imported"], answer["loaded"], answer["first"], outputs, talk.ask
    )


class _Talk:
    """Commands to a contestant and its answers."""

    def __init__(self, runtime: ProcessRuntime, child: subprocess.Popen[bytes], printed: IO[bytes]) -> None:
        self._runtime, self._child, self._printed = runtime, child, printed
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._stage = "starting"
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and return its answer."""
        assert self._child.stdin is not None
        with suppress(OSError):  # the answer describes how it ended
            self._child.stdin.write(json.dumps(command).encode() + b"\n")
            self._child.stdin.flush()
        self._stage = "invoking"
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return the next answer that is no stage."""
        while True:
            try:
                line = self._lines.get(timeout=self._runtime.timeout)
            except queue.Empty:
                seconds = f"{self._runtime.timeout:g} s"
                raise RuntimeFailed(self._runtime.name, f"no answer after {seconds} while {self._stage}") from None
            if not line.endswith(b"\n"):
                ended = how_it_ended(self._child.wait(self._runtime.timeout))
                raise RuntimeFailed(self._runtime.name, f"{ended} while {self._stage}{last_words(self._printed)}")
            answer: dict[str, Any] = json.loads(line)
            if "stage" not in answer:
                return self._check(answer)
            self._stage = answer["stage"]

    def _check(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "missing" in answer:
            raise self._runtime.missing(answer["missing"])
        if "failed" not in answer:
            return answer
        if self._runtime.adapter == "tflq":
            error = errors.from_process(answer["kind"], answer["facts"])
            if error is not None:
                raise error
        raise RuntimeFailed(self._runtime.name, f"{answer['failed']} (while {self._stage}){last_words(self._printed)}")
