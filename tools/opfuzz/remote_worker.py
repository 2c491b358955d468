"""A TFLite runtime of any release, as a program that answers on its standard streams.

It is a stand-alone program: it needs only Python 3.7, NumPy and the runtime.

Usage: python remote_worker.py MODULE [RESOLVER]. A request is (model, samples), the answer the outputs of every sample,
or the reason of a refusal. Each is a pickle after its length in 8 bytes, arrays as (type, shape, bytes).
"""
# ruff: noqa: B905, UP006, UP035 (Python 3.7)

from __future__ import annotations

import importlib
import os
import pickle
import struct
import sys
from typing import Any, BinaryIO, List

# Its own folder holds modules whose names hide others.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402

#: Memory of TensorFlow Lite Micro's interpreter.
ARENA_BYTES = 8 << 20


def packed(array: Any) -> Any:
    """Return an array in a form that every release of NumPy reads."""
    array = np.asarray(array)
    return array.dtype.str, array.shape, array.tobytes()


def unpacked(parts: Any) -> Any:
    """Return the array again, writable."""
    kind, shape, data = parts
    return np.frombuffer(data, np.dtype(kind)).reshape(shape).copy()


def receive(stream: BinaryIO) -> Any:
    """Return the next message; EOFError at the end."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    data = stream.read(struct.unpack("<Q", head)[0])
    return pickle.loads(data)


def send(stream: BinaryIO, message: Any) -> None:
    """Write a message."""
    data = pickle.dumps(message, 2)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def answer(runtime: Any, resolver: str, model: bytes, samples: Any) -> Any:
    """Return outputs of every sample, or the refusal."""
    if not hasattr(runtime, "OpResolverType") and hasattr(runtime.Interpreter, "from_bytes"):
        return micro_answer(runtime, model, samples)
    options = {"num_threads": 1}
    if resolver:
        options["experimental_op_resolver_type"] = getattr(runtime.OpResolverType, resolver)
    try:
        interpreter = runtime.Interpreter(model_content=model, **options)
        resize(interpreter, samples[0])
        interpreter.allocate_tensors()
        return [run(interpreter, sample) for sample in samples]
    except (ValueError, RuntimeError) as error:
        return str(error)


def micro_answer(runtime: Any, model: bytes, samples: Any) -> Any:
    """Return outputs of every sample by TensorFlow Lite Micro's interpreter, or the refusal."""
    try:
        interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
        return [micro_run(interpreter, sample) for sample in samples]
    except (ValueError, RuntimeError) as error:
        return str(error)


def micro_run(interpreter: Any, sample: Any) -> List[Any]:
    """Return one run on the packed inputs; no call counts the outputs."""
    for place, parts in enumerate(sample):
        interpreter.set_input(unpacked(parts), place)
    interpreter.invoke()
    made: List[Any] = []
    while True:
        try:
            made.append(packed(interpreter.get_output(len(made))))
        except (IndexError, ValueError, RuntimeError):
            return made


def resize(interpreter: Any, sample: Any) -> None:
    """Resize inputs whose shapes differ from those of the first sample."""
    for detail, (_, shape, _) in zip(interpreter.get_input_details(), sample):
        if tuple(detail["shape"]) != tuple(shape):
            interpreter.resize_tensor_input(detail["index"], shape)


def run(interpreter: Any, sample: Any) -> List[Any]:
    """Return one run on the packed inputs."""
    for detail, parts in zip(interpreter.get_input_details(), sample):
        value = unpacked(parts)
        if value.size:
            interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [packed(read(interpreter, detail)) for detail in interpreter.get_output_details()]


def read(interpreter: Any, detail: Any) -> Any:
    """Return an output; the runtimes raise for outputs without elements."""
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return interpreter.get_tensor(detail["index"])


def main(module: str, resolver: str = "") -> None:
    """Answer until the input ends. The first message reports that the runtime is present."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    runtime = importlib.import_module(module)
    runtime = getattr(runtime, "runtime", runtime) if module == "tflite_micro" else runtime
    send(answers, "ready")
    while True:
        try:
            model, samples = receive(requests)
        except EOFError:
            return
        send(answers, answer(runtime, resolver, model, samples))


if __name__ == "__main__":
    main(*sys.argv[1:])
