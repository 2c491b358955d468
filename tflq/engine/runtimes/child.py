"""The program that runs a real runtime, in a process and perhaps an environment of its own.

It reads a job from stdin, the size of an `.npz` archive in a line and the archive, and writes another to stdout, a file
that describes the present stage until the answer is complete, in case the runtime aborts. The process ends with its
parent. It is stand-alone: it needs only Python 3.8, NumPy of any version and the runtime.
"""
# ruff: noqa: B905 (Python 3.8 has no strict zip)

from __future__ import annotations

import importlib.util
import io
import json
import os
import platform
import signal
import sys
import threading
from contextlib import suppress
from importlib import metadata
from typing import Any, Dict, List, Tuple  # noqa: UP035

_HERE = os.path.dirname(os.path.abspath(__file__))  # holds modules with names of runtimes, which must not hide them
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402

#: An option of Linux's prctl (linux/prctl.h): the signal that this process gets when its parent ends.
PR_SET_PDEATHSIG = 1

Values = List[Any]  # noqa: UP006


def main() -> None:
    """Do the job; every error that Python can catch goes into the answer."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # a runtime's prints to stdout must not enter the answer
        stage = Stage(answer)
        archive = read_job()
        job = json.loads(archive["job"].tobytes().decode())
        if "timed" in job:
            end_by_kernel()
            beside("timing").serve(job, archive, answer, sys.modules[__name__])
            return
        end_with_parent()
        outputs: Dict[str, Any] = {}  # noqa: UP006
        try:
            result = work(job, archive, stage, outputs)
        except Exception as error:
            result = {"failed": f"{type(error).__name__}: {error}", "stage": stage.doing}
        outputs["result"] = np.frombuffer(json.dumps(result).encode(), np.uint8)
        stage.clear()
        np.savez(answer, **outputs)


def read_job() -> Any:
    """Return the archive that the parent sends."""
    data = sys.stdin.buffer.read(size := int(sys.stdin.buffer.readline()))
    if len(data) != size:
        raise SystemExit("the parent ended while it sent the job")
    return np.load(io.BytesIO(data), allow_pickle=False)


def end_with_parent() -> None:
    """End this process when its parent ends: by the kernel on Linux, and otherwise when the stdin pipe breaks."""
    end_by_kernel()
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()


def end_by_kernel() -> None:
    """Ask Linux to end this process when its parent ends."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):  # a Python or C library without it; the pipe is enough
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def work(job: Any, archive: Any, stage: Stage, outputs: Any) -> Any:
    """Run all models on all samples and fill `outputs`; return the description of the runtime."""
    stage("importing the runtime")
    load, distributions = beside("drivers").adapter_of(job)
    try:
        runtime = load()
    except ImportError as error:
        return {"missing": str(error)}
    names: Values = []
    delegated: Values = []
    for m in range(job["models"]):
        model = job["paths"].get(str(m)) or archive[f"model_{m}"].tobytes()
        nodes = 0
        for s, steps in enumerate(job["sequences"]):
            stage.where = f" of model {m}, sample {s}"
            stage("loading")
            interpreter = runtime(model, job)
            latest: Dict[str, Any] = {}  # noqa: UP006
            for k, step in enumerate(steps):
                stage.where = f" of model {m}, sample {s}" + (f", step {k}" if len(steps) > 1 else "")
                given = {name: unpack(f"s{s}_{k}_{i}", archive) for i, name in enumerate(step["inputs"])}
                given.update(carry(step, latest))
                if step["poisoned"]:
                    interpreter.poison(step["signature"], given, step["poisoned"], stage)
                values = interpreter.step(step["signature"], given, stage)
                latest.update(values)
                for i, value in enumerate(values.values()):
                    if value is not None:
                        outputs.update(pack(f"m{m}_s{s}_{k}_{i}", np.asarray(value)))
                names.append(list(values))
            nodes = interpreter.delegated()
        delegated.append(nodes)
    return {**described(distributions), "delegated": delegated, "names": names}


def described(distributions: Any) -> Dict[str, Any]:  # noqa: UP006
    """Return the facts of the runtime, of this Python and of the processor."""
    package, version = distribution_of(distributions)
    return {
        "package": package,
        "version": version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        **beside("processor").describe(),
    }


def beside(name: str) -> Any:
    """Load a module next to this one by its path; imports cannot find it by name."""
    spec = importlib.util.spec_from_file_location("tflq_" + name, os.path.join(_HERE, name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_model() -> str:
    """Return the processor's name in the system; empty if there is none. Runtimes choose kernels by it."""
    facts = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()  # the same line for each processor
                facts[key.strip()] = value.strip()
    except OSError:
        return platform.processor()
    return " ".join(facts[key] for key in ("CPU implementer", "CPU part") if key in facts)  # all facts on Arm


def distribution_of(names: Any) -> Tuple[str, str]:  # noqa: UP006
    """Return the first of the distributions that is installed, and its version."""
    for name in names:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return names[0], "unknown"


def carry(step: Any, latest: Any) -> Any:
    """Return the inputs of a step that come from outputs of earlier steps: see tflq.engine.runtimes.runtime.Step."""
    names = [*step["carried"], *(output for output, _ in step["greedy"].values())]
    missing = [name for name in names if latest.get(name) is None]
    if missing:
        raise ValueError(f"no earlier step has an output {missing[0]!r} that this one can take")
    given = {name: np.asarray(latest[name]) for name in step["carried"]}
    for name, (output, shape) in step["greedy"].items():
        scores = np.asarray(latest[output])
        given[name] = np.full(shape, scores.reshape(-1, scores.shape[-1])[-1].argmax(), np.int32)
    return given


class Stage:
    """The present stage, noted in the answer's place, so that an abort can be located."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.where, self.doing = answer, "", "starting"

    def __call__(self, doing: str) -> None:
        """Overwrite the note."""
        self.doing = doing + self.where
        self.clear()
        self.answer.write(self.doing.encode())
        self.answer.flush()

    def clear(self) -> None:
        """Remove the note."""
        self.answer.seek(0)
        self.answer.truncate()


def pack(name: str, value: Any) -> Dict[str, Any]:  # noqa: UP006
    """Pack an array for the pipe: see tflq.engine.runtimes.transport.pack."""
    if value.dtype.kind not in "OSU":
        return {name: value}
    words = [word.encode() if isinstance(word, str) else bytes(word) for word in value.ravel()]
    lengths, shape = (np.array(sizes, np.int64) for sizes in ([len(word) for word in words], value.shape))
    return {
        name + ".lengths": lengths,
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": shape,
    }


def unpack(name: str, entries: Any) -> Any:
    """Unpack an array from the pipe: see tflq.engine.runtimes.transport.unpack."""
    if name in entries:
        return entries[name]
    ends = np.cumsum(entries[name + ".lengths"])
    raw = entries[name + ".bytes"].tobytes()
    words = np.empty(len(ends), object)
    words[:] = [raw[end - length : end] for end, length in zip(ends, entries[name + ".lengths"])]
    return words.reshape(tuple(entries[name + ".shape"]))


if __name__ == "__main__":
    main()
