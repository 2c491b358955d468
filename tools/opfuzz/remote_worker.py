"""A TFLite runtime of any release, as a program that answers on its standard streams.

It is a stand-alone program: it needs only Python 3.7, NumPy and the runtime.

Usage: python remote_worker.py MODULE [RESOLVER [FALLBACK]]. A request is (model, samples), the answer the resolver with
the outputs of every sample, or with the reason of a refusal. Each is a pickle after its length in 8 bytes, arrays as
(type, shape, bytes).
"""
# ruff: noqa: B905, UP006, UP035 (Python 3.7)

from __future__ import annotations

import importlib
import os
import pickle
import resource
import struct
import sys
from typing import Any, BinaryIO, Callable, List, Sequence

# Its own folder holds modules whose names hide others.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402

#: Messages of runtimes for a resolver that lacks an operator, a version or a custom operator.
UNKNOWN = ("Didn't find op", "unresolved custom op", "Encountered unresolved")
#: Memory of TensorFlow Lite Micro's interpreter.
ARENA_BYTES = 8 << 20


def packed(array: Any) -> Any:
    """Return an array in a form that every release of NumPy reads; strings as bytes of one length."""
    array = np.asarray(array)
    array = array.astype("S") if array.dtype.kind == "O" else array
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


def answer(runtime: Any, resolvers: Sequence[str], model: bytes, samples: Any) -> Any:
    """Return the resolver that knows the model's operators, and the outputs of every sample or the refusal."""
    if not hasattr(runtime, "OpResolverType") and hasattr(runtime.Interpreter, "from_bytes"):
        return "", guarded(lambda: micro_outputs(runtime, model, samples))
    made = None
    for resolver in resolvers or [""]:
        made = resolver, guarded(lambda: outputs(runtime, resolver, model, samples))  # noqa: B023 (called at once)
        if not (isinstance(made[1], str) and any(word in made[1] for word in UNKNOWN)):
            break
    return made


def guarded(run: Callable[[], Any]) -> Any:
    """Return what `run` returns, packed, or the text of its refusal."""
    try:
        return [[packed(value) for value in made] for made in run()]
    except (ValueError, RuntimeError, TypeError, MemoryError) as error:
        return str(error)


def outputs(runtime: Any, resolver: str, model: bytes, samples: Any) -> List[Any]:
    """Return the outputs of every sample from one interpreter."""
    options = {"num_threads": 1}
    if resolver:
        options["experimental_op_resolver_type"] = getattr(runtime.OpResolverType, resolver)
    interpreter = runtime.Interpreter(model_content=model, **options)
    resize(interpreter, samples[0])
    interpreter.allocate_tensors()
    return [invoke(interpreter, [unpacked(parts) for parts in sample]) for sample in samples]


def micro_outputs(runtime: Any, model: bytes, samples: Any) -> List[Any]:
    """Return the outputs of every sample by TensorFlow Lite Micro's interpreter."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
    return [micro_run(interpreter, sample) for sample in samples]


def micro_run(interpreter: Any, sample: Any) -> List[Any]:
    """Return one run on the packed inputs; no call counts the outputs."""
    for place, parts in enumerate(sample):
        interpreter.set_input(unpacked(parts), place)
    interpreter.invoke()
    made: List[Any] = []
    while True:
        try:
            made.append(np.array(interpreter.get_output(len(made))))
        except (IndexError, ValueError, RuntimeError):
            return made


def resize(interpreter: Any, sample: Any) -> None:
    """Resize inputs whose shapes differ from those of the first sample."""
    for detail, (_, shape, _) in zip(interpreter.get_input_details(), sample):
        if tuple(detail["shape"]) != tuple(shape):
            interpreter.resize_tensor_input(detail["index"], shape)


def invoke(interpreter: Any, sample: Any) -> List[Any]:
    """Run an interpreter, a runtime's or tflq's, whose inputs have their final shapes; return its outputs."""
    details = interpreter.get_input_details()
    if len(details) != len(sample):
        raise ValueError(f"{len(sample)} inputs for a model of {len(details)}")
    for detail, value in zip(details, sample):
        if value.size:
            interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [read(interpreter, detail) for detail in interpreter.get_output_details()]


def read(interpreter: Any, detail: Any) -> Any:
    """Return an output; the runtimes raise for outputs without elements."""
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return np.array(interpreter.get_tensor(detail["index"]))


def main(module: str, *resolvers: str) -> None:
    """Answer until the input ends. The first message reports that the runtime is present."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
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
        send(answers, answer(runtime, resolvers, model, samples))


if __name__ == "__main__":
    main(*sys.argv[1:])
