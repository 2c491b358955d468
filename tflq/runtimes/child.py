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
from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035

_HERE = os.path.dirname(os.path.abspath(__file__))  # holds modules with names of runtimes, which must not hide them
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402

#: Arena for the microcontroller interpreter: large enough, since an observed model holds all tensors at once.
ARENA_BYTES = 64 << 20
#: An option of Linux's prctl (linux/prctl.h): the signal that this process gets when its parent ends.
PR_SET_PDEATHSIG = 1

Values = List[Any]  # noqa: UP006


class Missing(Exception):
    """The runtime is not installed in this environment."""


def _litert() -> Any:
    from ai_edge_litert import interpreter

    return interpreter.Interpreter, interpreter.OpResolverType


def _tensorflow() -> Any:
    import tensorflow

    return tensorflow.lite.Interpreter, tensorflow.lite.experimental.OpResolverType


def _tflite_runtime() -> Any:
    from tflite_runtime import interpreter

    return interpreter.Interpreter, interpreter.OpResolverType


def _tflite_micro() -> Any:
    from tflite_micro import runtime

    return runtime.Interpreter, None


#: adapter -> (its import, the distributions that may provide it)
ADAPTERS = {
    "litert": (_litert, ("ai-edge-litert", "ai-edge-litert-nightly")),
    "tensorflow": (_tensorflow, ("tensorflow", "tensorflow-cpu", "tf-nightly")),
    "tflite_runtime": (_tflite_runtime, ("tflite-runtime",)),
    "tflite_micro": (_tflite_micro, ("tflite-micro",)),
}


def main() -> None:
    """Do the job; every error that Python can catch goes into the answer."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # a runtime's prints to stdout must not enter the answer
        stage = Stage(answer)
        archive = read_job()
        end_with_parent()
        outputs: Dict[str, Any] = {}  # noqa: UP006
        try:
            result = work(archive, stage, outputs)
        except Missing as error:
            result = {"missing": str(error)}
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
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):  # a Python or C library without it; the pipe is enough
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()


def work(archive: Any, stage: Stage, outputs: Any) -> Any:
    """Run all models on all samples and fill `outputs`; return the description of the runtime."""
    job = json.loads(archive["job"].tobytes().decode())
    stage("importing the runtime")
    load, distributions = ADAPTERS[job["adapter"]]
    try:
        interpreter_class, resolvers = load()
    except ImportError as error:
        raise Missing(str(error)) from error
    counts: Values = []
    delegated: Values = []
    inputs = [[unpack(f"s{s}_{i}", archive) for i in range(count)] for s, count in enumerate(job["samples"])]
    for m in range(job["models"]):
        model = archive[f"model_{m}"].tobytes()
        nodes = 0
        for s, values in enumerate(inputs):
            stage.where = f" of model {m}, sample {s}"
            if job["adapter"] == "tflite_micro":
                values_out = run_micro(interpreter_class, model, values, stage)
            else:
                values_out, nodes = run_desktop(interpreter_class, resolvers, model, values, job, stage)
            for i, value in enumerate(values_out):
                if value is not None:
                    outputs.update(pack(f"m{m}_s{s}_{i}", np.asarray(value)))
            counts.append(len(values_out))
        delegated.append(nodes)
    package, version = distribution_of(distributions)
    return {
        "package": package,
        "version": version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        **processor().describe(),
        "delegated": delegated,
        "counts": counts,
    }


def processor() -> Any:
    """Load the module next to this one by its path; imports cannot find it by name."""
    spec = importlib.util.spec_from_file_location("tflq_processor", os.path.join(_HERE, "processor.py"))
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


def run_desktop(
    interpreter_class: Any, resolvers: Any, model: bytes, values: Values, job: Any, stage: Stage
) -> Tuple[Values, int]:  # noqa: UP006
    """Return one invocation of the common interpreter of LiteRT, TensorFlow and tflite-runtime."""
    stage("loading")
    interpreter = interpreter_class(
        model_content=model,
        num_threads=job["threads"],
        experimental_op_resolver_type=getattr(resolvers, job["resolver"]),
    )
    details = interpreter.get_input_details()
    if len(details) != len(values):
        raise ValueError(f"the model has {len(details)} inputs, got {len(values)}")
    for detail, value in zip(details, values):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    stage("allocating tensors")
    interpreter.allocate_tensors()
    for detail, value in zip(details, values):
        if value.size:
            interpreter.set_tensor(detail["index"], settable(value))
    stage("invoking")
    interpreter.invoke()
    stage("reading the outputs")
    outputs = [read(interpreter, detail) for detail in interpreter.get_output_details()]
    return outputs, partitions(interpreter)


def settable(value: Any) -> Any:
    """Return `value` in the form that set_tensor reads correctly: for a scalar object it would read the pointer."""
    if value.dtype == object and value.ndim == 0:
        word = value.item()
        return np.array(word, f"S{max(len(word), 1)}")
    return value


def read(interpreter: Any, detail: Any) -> Optional[Any]:  # noqa: UP045
    """Return a tensor's value, or None if the runtime holds none."""
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    try:
        return interpreter.get_tensor(detail["index"])
    except ValueError:
        return None


def partitions(interpreter: Any) -> int:
    """Return the number of graph nodes that a delegate put in place of others."""
    try:
        return sum(detail["op_name"] == "DELEGATE" for detail in interpreter._get_ops_details())
    except Exception:  # a private function, which some release may lack
        return 0


def run_micro(interpreter_class: Any, model: bytes, values: Values, stage: Stage) -> Values:
    """Return one invocation of TensorFlow Lite Micro."""
    stage("loading")
    interpreter = interpreter_class.from_bytes(model, arena_size=ARENA_BYTES + 2 * len(model))
    for i, value in enumerate(values):
        interpreter.set_input(value, i)
    stage("invoking")
    interpreter.invoke()
    stage("reading the outputs")
    outputs: Values = []
    while True:
        try:
            outputs.append(interpreter.get_output(len(outputs)))
        except Exception:  # beyond the last output; there is no call that counts them
            return outputs


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
    """Pack an array for the pipe: see tflq.runtimes.transport.pack."""
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
    """Unpack an array from the pipe: see tflq.runtimes.transport.unpack."""
    if name in entries:
        return entries[name]
    ends = np.cumsum(entries[name + ".lengths"])
    raw = entries[name + ".bytes"].tobytes()
    words = np.empty(len(ends), object)
    words[:] = [raw[end - length : end] for end, length in zip(ends, entries[name + ".lengths"])]
    return words.reshape(tuple(entries[name + ".shape"]))


if __name__ == "__main__":
    main()
