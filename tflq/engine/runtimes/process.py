"""A runtime in a child process: an abort there is a result here, and does not end this process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from tflq.engine.runtimes.children import nameless_file, started, temporary_folder
from tflq.engine.runtimes.runtime import Content, Description, Execution, Sample, Step, Stepped, by_position
from tflq.engine.runtimes.transport import pack, unpack
from tflq.errors import FileAccessError, RuntimeFailed, RuntimeMissing
from tflq.typing import Array

CHILD = Path(__file__).with_name("child.py")
#: Size in bytes from which a model reaches the child as a file, which it maps, and not through the pipe.
_LARGE = 16 << 20
#: Modules of runtimes that are not named as their adapter.
_MODULES = {"litert": "ai_edge_litert"}
#: Length of the runtime's output in an error.
LAST_WORDS = 600


@dataclass(frozen=True, slots=True)
class ProcessRuntime:
    """One runtime and resolver, run by the Python at `python` (None: this one)."""

    name: str
    package: str  # the distribution to install
    adapter: str  # the function of child.py that drives it
    resolver: str  # OpResolverType's member, or the only one
    delegate: str = ""  # the delegate that the resolver applies by default
    python: str | None = None
    threads: int = 1
    signatures: bool = True  # False for a runtime that runs the first subgraph only
    timeout: float = 900.0  # seconds, for all models and samples together
    release: str = ""  # such as 2.4, if no other may run
    takes: tuple[tuple[str, tuple[str, ...]], ...] = ()  # settings of a foreign system: see `foreign`
    settings: tuple[tuple[str, str], ...] = ()  # those that were chosen

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions to install, the one that gives the version first."""
        return tuple(self.package.split())

    @property
    def all_settings(self) -> dict[str, str]:
        """Every setting that the system takes with its value: the chosen one, or the default."""
        return {name: values[0] for name, values in self.takes} | dict(self.settings)

    def describe(self) -> Description:
        """Describe the runtime: see Runtime.describe."""
        return self.run((), ()).description

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> Execution:
        """Run samples: see Runtime.run."""
        stepped = self.run_steps(models, [[by_position(sample)] for sample in samples])
        outputs = tuple(tuple(tuple(steps[0].values()) for steps in of_model) for of_model in stepped.outputs)
        return Execution(stepped.description, outputs)

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Step]]) -> Stepped:
        """Run sequences of steps: see Runtime.run_steps."""
        with ExitStack() as stack:
            job, answer, printed = (stack.enter_context(nameless_file()) for _ in range(3))
            large = [m for m, model in enumerate(models) if len(model) >= _LARGE]
            folder = Path(stack.enter_context(temporary_folder())) if large else Path()
            paths = {m: _written(folder / f"{m}.tflite", models[m]) for m in large}
            self._write_job(job, models, sequences, paths)
            status = self._execute(job, answer, printed)
            entries = self._entries(status, answer, printed)
        result = json.loads(entries.pop("result").tobytes())
        return Stepped(self.described(result), _collect(entries, result, models, sequences))

    def _write_job(
        self, file: IO[bytes], models: Sequence[Content], sequences: Sequence[Sequence[Step]], paths: Mapping[int, str]
    ) -> None:
        job = {
            "adapter": self.adapter,
            "resolver": self.resolver,
            "settings": self.all_settings,
            "packages": self.packages,
            "threads": self.threads,
            "models": len(models),
            "paths": paths,
            "sequences": [[_describe(step) for step in steps] for steps in sequences],
        }
        entries = {"job": np.frombuffer(json.dumps(job).encode(), np.uint8)}
        entries |= {f"model_{m}": np.frombuffer(model, np.uint8) for m, model in enumerate(models) if m not in paths}
        for s, steps in enumerate(sequences):
            for k, step in enumerate(steps):
                for i, value in enumerate(step.inputs.values()):
                    entries |= pack(f"s{s}_{k}_{i}", value)
        try:
            np.savez(file, **entries)  # type: ignore[arg-type]
        except OSError as error:
            raise FileAccessError("temporary files", error.strerror or str(error)) from error

    def _execute(self, job: IO[bytes], answer: IO[bytes], printed: IO[bytes]) -> int:
        """Run the child and return its exit status."""
        python = shutil.which(self.executable)
        if python is None:
            raise RuntimeMissing(self.name, f"no Python at {self.python}")
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
        try:
            with started(
                [python, str(CHILD)], stdin=subprocess.PIPE, stdout=answer, stderr=printed, env=environment
            ) as child:
                Thread(target=feed, args=(child.stdin, job), daemon=True).start()
                return child.wait(self.timeout)
        except subprocess.TimeoutExpired:
            raise RuntimeFailed(self.name, f"no end after {self.timeout:g} s while {_stage(answer)}") from None
        except OSError as error:
            raise RuntimeMissing(self.name, f"cannot start {python}: {error.strerror}") from error

    @property
    def is_absent(self) -> bool:
        """True if this Python would run it and has no module of it, which takes no child process to find out."""
        if self.python is not None:
            return False
        try:
            return find_spec(_MODULES.get(self.adapter, self.adapter)) is None
        except ValueError:  # a stand-in without a spec
            return False

    @property
    def executable(self) -> str:
        """The Python that runs the child."""
        return self.python or sys.executable

    def missing(self, reason: str) -> RuntimeMissing:
        """Return the error for a runtime that cannot be imported."""
        python = shutil.which(self.executable)
        return RuntimeMissing(
            self.name, f"{reason}; install {self.package} there, or name a Python that has it ({python})"
        )

    def _entries(self, status: int, answer: IO[bytes], printed: IO[bytes]) -> dict[str, Array]:
        """Return the arrays of the child's answer; raise if the child failed."""
        answer.seek(0)
        try:
            if status != 0:
                raise ValueError
            with np.load(answer, allow_pickle=False) as archive:
                entries: dict[str, Array] = dict(archive)
        except (ValueError, EOFError, BadZipFile):
            words = f"{how_it_ended(status)} while {_stage(answer)}{last_words(printed)}"
            raise RuntimeFailed(self.name, words) from None
        result = json.loads(entries["result"].tobytes())
        if "missing" in result:
            raise self.missing(result["missing"])
        if "failed" in result:
            raise RuntimeFailed(self.name, f"{result['failed']} (while {result['stage']}){last_words(printed)}")
        return entries

    def described(self, result: dict[str, Any]) -> Description:
        """Return the description of the runtime, from the child's answer.

        Raises:
            RuntimeMissing: Another release is installed than the one that was asked for.
        """
        if self.release and ".".join(result["version"].split(".")[:2]) != self.release:
            here = f"{result['package']} {result['version']}"
            raise RuntimeMissing(self.name, f"release {self.release} is asked for, here is {here}; name its Python")
        return Description(
            name=self.name,
            package=result["package"],
            version=result["version"],
            resolver=self.resolver or " ".join(f"{name}={value}" for name, value in self.all_settings.items()),
            threads=self.threads,
            python=result["python"],
            numpy=result["numpy"],
            platform=result["platform"],
            cpu=result["cpu"],
            vectors=result["vectors"],
            first_level_cache=result["first_level_cache"],
            delegate=self.delegate,
            delegated=tuple(result["delegated"]),
        )


def _written(path: Path, model: Content) -> str:
    """Write a model to a file and return its path."""
    try:
        path.write_bytes(model)
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error
    return str(path)


def _describe(step: Step) -> dict[str, Any]:
    names = {"signature": step.signature, "inputs": list(step.inputs), "carried": list(step.carried)}
    return {**names, "greedy": dict(step.greedy), "poisoned": list(step.poisoned)}


def _collect(
    arrays: dict[str, Array],
    result: dict[str, Any],
    models: Sequence[bytes | memoryview],
    sequences: Sequence[Sequence[Step]],
) -> tuple[tuple[tuple[dict[str, Array | None], ...], ...], ...]:
    """Return outputs by name: of models, of their sequences, of their steps."""
    names = iter(result.get("names", ()))
    return tuple(
        tuple(
            tuple(
                {name: unpack(f"m{m}_s{s}_{k}_{i}", arrays) for i, name in enumerate(next(names))}
                for k in range(len(steps))
            )
            for s, steps in enumerate(sequences)
        )
        for m in range(len(models))
    )


def feed(pipe: IO[bytes], job: IO[bytes]) -> None:
    """Send the job, its size in a line and its bytes. The pipe stays open, which keeps the child alive.

    A child may end before all is sent, even before this begins; then the caller closes both files.
    """
    with suppress(OSError, ValueError):  # a broken pipe, a closed file
        size = job.seek(0, os.SEEK_END)
        job.seek(0)
        pipe.write(b"%d\n" % size)
        shutil.copyfileobj(job, pipe)
        pipe.flush()


def _stage(answer: IO[bytes]) -> str:
    """Return the last stage of a child without an answer."""
    answer.seek(0)
    return answer.read(LAST_WORDS).decode(errors="replace").strip() or "starting"


def last_words(printed: IO[bytes]) -> str:
    """Return the end of the runtime's output, to append to an error's text."""
    printed.seek(max(printed.seek(0, os.SEEK_END) - 4 * LAST_WORDS, 0))
    words = printed.read().decode(errors="replace").strip()[-LAST_WORDS:]
    return f": {words}" if words else ""


def how_it_ended(status: int) -> str:
    """Return how a process ended, in words: by a signal (negative on POSIX) or with an exit status."""
    if status < 0:
        try:
            return f"aborted with {signal.Signals(-status).name}"
        except ValueError:
            return f"aborted with signal {-status}"
    return f"ended with status {status}"
