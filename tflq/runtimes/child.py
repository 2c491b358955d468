"""The program that runs a real runtime, in a process and perhaps an environment of its own.

Usage: python child.py FOLDER. It reads `job.json`, `model_<m>.tflite` and `inputs.npz` there and writes `outputs.npz`
and `result.json`; `stage.txt` always says what it was doing, for the case that the runtime aborts. It stands alone:
Python 3.8, NumPy of any version and the runtime are all it needs.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata

# Its own folder holds modules named after the runtimes; they must not hide them.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402


class Missing(Exception):
    """The runtime is not installed in this environment."""


def _litert():
    from ai_edge_litert import interpreter

    return interpreter.Interpreter, interpreter.OpResolverType


def _tensorflow():
    import tensorflow

    return tensorflow.lite.Interpreter, tensorflow.lite.experimental.OpResolverType


def _tflite_runtime():
    from tflite_runtime import interpreter

    return interpreter.Interpreter, interpreter.OpResolverType


def _tflite_micro():
    from tflite_micro import runtime

    return runtime.Interpreter, None


#: adapter -> (its import, the distributions that may provide it)
ADAPTERS = {
    "litert": (_litert, ("ai-edge-litert", "ai-edge-litert-nightly")),
    "tensorflow": (_tensorflow, ("tensorflow", "tensorflow-cpu", "tf-nightly")),
    "tflite_runtime": (_tflite_runtime, ("tflite-runtime",)),
    "tflite_micro": (_tflite_micro, ("tflite-micro",)),
}


def main(folder):
    """Do the job in `folder`; whatever Python can catch ends up in `result.json`."""
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    outputs = {}
    try:
        result = work(folder, job, outputs)
    except Missing as error:
        result = {"missing": str(error)}
    except Exception as error:
        result = {"failed": "%s: %s" % (type(error).__name__, error)}
    np.savez(os.path.join(folder, "outputs.npz"), **outputs)
    with open(os.path.join(folder, "result.json"), "w") as file:
        json.dump(result, file)


def work(folder, job, outputs):
    """Run all models on all samples, filling `outputs`; returns what there is to say about the runtime."""
    stage = Stage(folder)
    stage("importing the runtime")
    load, distributions = ADAPTERS[job["adapter"]]
    try:
        interpreter_class, resolvers = load()
    except ImportError as error:
        raise Missing(str(error)) from error
    result = {
        "package": distributions[0],
        "version": "unknown",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": "%s %s" % (platform.system(), platform.machine()),
        "delegated": [],
    }
    for distribution in distributions:
        try:
            result["version"], result["package"] = metadata.version(distribution), distribution
            break
        except metadata.PackageNotFoundError:
            pass
    if not job["models"]:
        return result
    with np.load(os.path.join(folder, "inputs.npz"), allow_pickle=False) as entries:
        inputs = dict(entries)
    for m in range(job["models"]):
        with open(os.path.join(folder, "model_%d.tflite" % m), "rb") as file:
            model = file.read()
        delegated = 0
        for s, count in enumerate(job["samples"]):
            values = [unpack("s%d_%d" % (s, i), inputs) for i in range(count)]
            where = "of model %d, sample %d" % (m, s)
            if job["adapter"] == "tflite_micro":
                made = run_micro(interpreter_class, model, values, stage, where)
            else:
                made, delegated = run_desktop(interpreter_class, resolvers, model, values, job, stage, where)
            for i, value in enumerate(made):
                if value is not None:
                    outputs.update(pack("m%d_s%d_%d" % (m, s, i), np.asarray(value)))
            result.setdefault("outputs", len(made))
            result["counts"] = result.get("counts", []) + [len(made)]
        result["delegated"].append(delegated)
    stage("done")
    return result


def run_desktop(interpreter_class, resolvers, model, values, job, stage, where):
    """One invocation of the interpreter that LiteRT, TensorFlow and tflite-runtime share."""
    stage("loading " + where)
    interpreter = interpreter_class(
        model_content=model,
        num_threads=job["threads"],
        experimental_op_resolver_type=getattr(resolvers, job["resolver"]),
    )
    for detail, value in zip(interpreter.get_input_details(), values):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    stage("allocating tensors " + where)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    if len(details) != len(values):
        raise ValueError("the model has %d inputs, got %d" % (len(details), len(values)))
    for detail, value in zip(details, values):
        if value.size:
            interpreter.set_tensor(detail["index"], value)
    stage("invoking " + where)
    interpreter.invoke()
    stage("reading the outputs " + where)
    made = [read(interpreter, detail) for detail in interpreter.get_output_details()]
    return made, partitions(interpreter)


def read(interpreter, detail):
    """A tensor's value, or None where the runtime holds none."""
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    try:
        return interpreter.get_tensor(detail["index"])
    except ValueError:
        return None


def partitions(interpreter):
    """How many nodes of the graph were replaced by a delegate's."""
    try:
        return sum(detail["op_name"] == "DELEGATE" for detail in interpreter._get_ops_details())
    except Exception:
        return 0


#: Arena for the microcontroller interpreter: it only has to be enough, and large models hold all tensors at once.
ARENA_BYTES = 64 << 20


def run_micro(interpreter_class, model, values, stage, where):
    """One invocation of TensorFlow Lite Micro."""
    stage("loading " + where)
    interpreter = interpreter_class.from_bytes(model, arena_size=ARENA_BYTES + 2 * len(model))
    for i, value in enumerate(values):
        interpreter.set_input(value, i)
    stage("invoking " + where)
    interpreter.invoke()
    stage("reading the outputs " + where)
    made = []
    while True:
        try:
            made.append(interpreter.get_output(len(made)))
        except Exception:  # beyond the last output
            return made


class Stage:
    """Notes on disk what is being done, so that an abort can be placed."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "stage.txt")

    def __call__(self, text):
        """Overwrite the note."""
        with open(self.path, "w") as file:
            file.write(text)


def pack(name, value):
    """As tflq.runtimes.transport.pack."""
    if value.dtype.kind not in "OSU":
        return {name: value}
    words = [word.encode() if isinstance(word, str) else bytes(word) for word in value.ravel()]
    return {
        name + ".lengths": np.array([len(word) for word in words], np.int64),
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": np.array(value.shape, np.int64),
    }


def unpack(name, entries):
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
