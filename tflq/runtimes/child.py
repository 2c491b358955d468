"""The program that runs a real runtime, in a process and perhaps an environment of its own.

Usage: python child.py FOLDER. It reads `job.json`, `model_<m>.tflite` and `inputs.npz` there and writes `outputs.npz`
and `result.json`; `stage.txt` always says what it is doing, for the case that the runtime aborts. It stands alone:
Python 3.8, NumPy of any version and the runtime are all it needs.
"""
# ruff: noqa: B905 (Python 3.8 has no strict zip)

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035

# Its own folder holds modules named after the runtimes; they must not hide them.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402

#: Arena for the microcontroller interpreter: it only has to be enough, and an observed model holds all tensors at once.
ARENA_BYTES = 64 << 20

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


def main(folder: str) -> None:
    """Do the job in `folder`; whatever Python can catch ends up in `result.json`."""
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    outputs: Dict[str, Any] = {}  # noqa: UP006
    try:
        result = work(folder, job, outputs)
    except Missing as error:
        result = {"missing": str(error)}
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"}
    np.savez(os.path.join(folder, "outputs.npz"), **outputs)
    with open(os.path.join(folder, "result.json"), "w") as file:
        json.dump(result, file)


def work(folder: str, job: Any, outputs: Any) -> Any:
    """Run all models on all samples, filling `outputs`; returns what there is to say about the runtime."""
    stage = Stage(folder)
    stage("importing the runtime")
    load, distributions = ADAPTERS[job["adapter"]]
    try:
        interpreter_class, resolvers = load()
    except ImportError as error:
        raise Missing(str(error)) from error
    counts: Values = []
    delegated: Values = []
    inputs: Dict[str, Any] = {}  # noqa: UP006
    if job["models"]:
        with np.load(os.path.join(folder, "inputs.npz"), allow_pickle=False) as entries:
            inputs = dict(entries)
    for m in range(job["models"]):
        with open(os.path.join(folder, f"model_{m}.tflite"), "rb") as file:
            model = file.read()
        nodes = 0
        for s, count in enumerate(job["samples"]):
            values = [unpack(f"s{s}_{i}", inputs) for i in range(count)]
            stage.where = f" of model {m}, sample {s}"
            if job["adapter"] == "tflite_micro":
                made = run_micro(interpreter_class, model, values, stage)
            else:
                made, nodes = run_desktop(interpreter_class, resolvers, model, values, job, stage)
            for i, value in enumerate(made):
                if value is not None:
                    outputs.update(pack(f"m{m}_s{s}_{i}", np.asarray(value)))
            counts.append(len(made))
        delegated.append(nodes)
    package, version = distribution_of(distributions)
    return {
        "package": package,
        "version": version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "delegated": delegated,
        "counts": counts,
    }


def distribution_of(names: Any) -> Tuple[str, str]:  # noqa: UP006
    """The first of the distributions that is installed, and its version."""
    for name in names:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return names[0], "unknown"


def run_desktop(
    interpreter_class: Any, resolvers: Any, model: bytes, values: Values, job: Any, stage: Stage
) -> Tuple[Values, int]:  # noqa: UP006
    """One invocation of the interpreter that LiteRT, TensorFlow and tflite-runtime share."""
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
    made = [read(interpreter, detail) for detail in interpreter.get_output_details()]
    return made, partitions(interpreter)


def settable(value: Any) -> Any:
    """`value` as set_tensor reads it rightly: of a scalar of objects it would take the pointer for the string."""
    if value.dtype == object and value.ndim == 0:
        word = value.item()
        return np.array(word, f"S{max(len(word), 1)}")
    return value


def read(interpreter: Any, detail: Any) -> Optional[Any]:  # noqa: UP045
    """A tensor's value, or None where the runtime holds none."""
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    try:
        return interpreter.get_tensor(detail["index"])
    except ValueError:
        return None


def partitions(interpreter: Any) -> int:
    """How many nodes of the graph a delegate put in the place of others."""
    try:
        return sum(detail["op_name"] == "DELEGATE" for detail in interpreter._get_ops_details())
    except Exception:  # a private function, which some release may lack
        return 0


def run_micro(interpreter_class: Any, model: bytes, values: Values, stage: Stage) -> Values:
    """One invocation of TensorFlow Lite Micro."""
    stage("loading")
    interpreter = interpreter_class.from_bytes(model, arena_size=ARENA_BYTES + 2 * len(model))
    for i, value in enumerate(values):
        interpreter.set_input(value, i)
    stage("invoking")
    interpreter.invoke()
    stage("reading the outputs")
    made: Values = []
    while True:
        try:
            made.append(interpreter.get_output(len(made)))
        except Exception:  # beyond the last output; there is no call that counts them
            return made


class Stage:
    """Notes on disk what is being done, so that an abort can be placed."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "stage.txt")
        self.where = ""

    def __call__(self, doing: str) -> None:
        """Overwrite the note."""
        with open(self.path, "w") as file:
            file.write(doing + self.where)


def pack(name: str, value: Any) -> Dict[str, Any]:  # noqa: UP006
    """As tflq.runtimes.transport.pack."""
    if value.dtype.kind not in "OSU":
        return {name: value}
    words = [word.encode() if isinstance(word, str) else bytes(word) for word in value.ravel()]
    return {
        name + ".lengths": np.array([len(word) for word in words], np.int64),
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": np.array(value.shape, np.int64),
    }


def unpack(name: str, entries: Any) -> Any:
    """As tflq.runtimes.transport.unpack."""
    if name in entries:
        return entries[name]
    ends = np.cumsum(entries[name + ".lengths"])
    raw = entries[name + ".bytes"].tobytes()
    words = np.empty(len(ends), object)
    words[:] = [raw[end - length : end] for end, length in zip(ends, entries[name + ".lengths"])]
    return words.reshape(tuple(entries[name + ".shape"]))


if __name__ == "__main__":
    main(sys.argv[1])
