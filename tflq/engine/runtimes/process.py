"""A runtime in a child process, and the runtimes that have names.

Child processes that end with this one, for any reason.

A runtime in a child process: an abort there is a result here, and does not end this process.

The runtimes that have names: the TFLite family with its resolvers, and foreign systems with their settings.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from tflq.engine.runtimes.runtime import (
    Content,
    Description,
    Invocation,
    RuntimeOutputs,
    Sample,
    Stepped,
    by_position,
    pack,
    unpack,
)
from tflq.errors import FileAccessError, RuntimeFailed, RuntimeMissing
from tflq.typing import Array

#: Environment variable that marks the descendants of a child; each child has another value.
_FAMILY = "TFLQ_CHILD"
#: Number of searches for descendants, since they may start others.
_ROUNDS = 20


@contextmanager
def started(command: str | Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a child process, as subprocess.Popen starts it, that ends with the block.

    It leads a group of its own: programs that it started and did not wait for are killed with it. On Linux that
    includes programs that left the group: they are recognized by an environment variable. Ctrl-C in a terminal does not
    reach that group, but this process, which then leaves the block.
    """
    token = secrets.token_hex(16)
    options["env"] = {**(options.get("env") or os.environ), _FAMILY: token}
    with subprocess.Popen(command, start_new_session=os.name == "posix", **options) as child:
        try:
            yield child
        finally:
            with suppress(OSError):  # it has just ended, or did not read all of its input
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
    """Kill the processes whose environment holds the mark, and those that they start in the meantime."""
    for _ in range(_ROUNDS):
        family = [pid for pid in _pids() if pid != os.getpid() and mark in _environment(pid).split(b"\0")]
        for pid in family:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not family:
            return


def _pids() -> list[int]:
    """Return the ids of all processes, if the system has /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """Return the environment at the start of a process; nothing if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def nameless_file() -> IO[bytes]:
    """Return a temporary file that disappears with the last process that has it open, even if that is killed.

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
        FileAccessError: See nameless_file.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="tflq-")
    except OSError as error:
        raise FileAccessError("temporary files", error.strerror or str(error)) from error


#: The program that runs a runtime.
CHILD = Path(__file__).with_name("child")
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
    adapter: str  # the name of what drives it in `child`
    resolver: str  # OpResolverType's member, or the only one
    delegate: str = ""  # the delegate that the resolver applies by default
    python: str | None = None
    threads: int = 1
    signatures: bool = True  # False for a runtime that runs the first subgraph only
    timeout: float = 900.0  # seconds, for all models and samples together
    release: str = ""  # such as 2.4, if no other may run
    takes: tuple[tuple[str, tuple[str, ...]], ...] = ()  # settings of a foreign system: see `named`
    settings: tuple[tuple[str, str], ...] = ()  # those that were chosen
    is_foreign: bool = False  # True for a system that is not of the TFLite family

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

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> RuntimeOutputs:
        """Run samples: see Runtime.run."""
        stepped = self.run_steps(models, [[by_position(sample)] for sample in samples])
        outputs = tuple(tuple(tuple(steps[0].values()) for steps in of_model) for of_model in stepped.outputs)
        return RuntimeOutputs(stepped.description, outputs)

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Invocation]]) -> Stepped:
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
        self,
        file: IO[bytes],
        models: Sequence[Content],
        sequences: Sequence[Sequence[Invocation]],
        paths: Mapping[int, str],
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


def _describe(step: Invocation) -> dict[str, Any]:
    names = {"signature": step.signature, "inputs": list(step.inputs), "carried": list(step.carried)}
    return {**names, "greedy": dict(step.greedy), "poisoned": list(step.poisoned)}


def _collect(
    arrays: dict[str, Array],
    result: dict[str, Any],
    models: Sequence[bytes | memoryview],
    sequences: Sequence[Sequence[Invocation]],
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


#: Resolvers of the interpreters of the family, by the ending of a runtime's name.
_RESOLVERS = {"ref": "BUILTIN_REF", "opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}
#: Packages with these resolvers, by the first part of a runtime's name, and the adapters that drive them. The last one
#: needs NumPy 1: name a Python that has both.
_NAMED_FAMILY = {
    "litert": ("ai-edge-litert", "litert"),
    "tensorflow": ("tensorflow", "tensorflow"),
    "tflite-runtime": ("tflite-runtime", "tflite_runtime"),
}

#: Settings of a system: name -> its values, the default first. Only a value `...` in the list: any text.
Takes = tuple[tuple[str, tuple[str, ...]], ...]

_TOSA = "tosa-converter-for-tflite tosa-tools"
_OPSET: Takes = (("opset", ("18", "...")),)


def _runtimes() -> Iterator[ProcessRuntime]:
    for family, (package, adapter) in _NAMED_FAMILY.items():
        for ending, resolver in _RESOLVERS.items():
            delegate = "XNNPACK" if ending == "xnnpack" else ""
            yield ProcessRuntime(f"{family}-{ending}", package, adapter, resolver, delegate=delegate)
    yield ProcessRuntime("tflm", "tflite-micro", "tflite_micro", "reference kernels", signatures=False)


def _systems() -> Iterator[ProcessRuntime]:
    yield _system("openvino", "openvino", "openvino", (("precision", ("f32", "bf16", "f16", "default")),))
    yield _system("onnxruntime", "onnxruntime tf2onnx tensorflow", "onnxruntime", _OPSET)
    yield _system("opencv", "opencv-python-headless", "opencv", (("engine", ("classic", "new", "auto", "default")),))
    yield _system("tvm", "apache-tvm tflite", "tvm")
    yield _system("iree", f"iree-base-compiler iree-base-runtime {_TOSA}", "iree")
    yield _system("tosa-reference", _TOSA, "tosa_reference")
    yield _system("tract", "tract tf2onnx tensorflow", "tract", _OPSET)
    yield _system("micro-program", "numpy", "micro_program", (("program", ("", "...")),))


def _system(name: str, package: str, adapter: str, takes: Takes = ()) -> ProcessRuntime:
    return ProcessRuntime(name, package, adapter, "", signatures=False, takes=takes, is_foreign=True)


#: Every runtime of the TFLite family, by name.
RUNTIMES: dict[str, ProcessRuntime] = {runtime.name: runtime for runtime in _runtimes()}
#: Foreign systems that run .tflite models, by name: compilers and runtimes with arithmetics of their own. Each has a
#: function in child/tflq_foreign.py, which runs in the environment of the system.
FOREIGN: dict[str, ProcessRuntime] = {system.name: system for system in _systems()}
