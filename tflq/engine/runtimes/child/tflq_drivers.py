"""The interpreters of real runtimes behind one interface: load a model, run steps."""
# ruff: noqa: B905 (Python 3.8 has no strict zip)

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, Optional  # noqa: UP035

import numpy as np

#: Arena for the microcontroller interpreter: large enough, since an observed model holds all tensors at once.
ARENA_BYTES, MOST_ARENA_BYTES = 64 << 20, 2 << 30
#: The byte that poisoned memory is filled with: no float of these bytes is a likely result.
POISON = 0xA5
#: The beginning of the error for a tensor without a value.
NO_VALUE = "Tensor data is null"


class Desktop:
    """The common interpreter of LiteRT, TensorFlow and tflite-runtime. Variables live as long as it does."""

    def __init__(self, interpreter_class: Any, model: Any, threads: int, **options: Any) -> None:
        """Load `model`, a path or the bytes of a file."""
        source = "model_path" if isinstance(model, str) else "model_content"
        self.interpreter = interpreter_class(**{source: model}, num_threads=threads, **options)
        self.shapes: Any = None

    def step(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Run a signature, or the first subgraph; return outputs by name."""
        return self.positional(inputs, stage) if signature is None else self.named(signature, inputs, stage)

    def positional(self, inputs: Any, stage: Any) -> Any:
        """Run the first subgraph."""
        interpreter = self.interpreter
        self.give(in_order(inputs), stage)
        stage("invoking")
        interpreter.invoke()
        stage("reading the outputs")
        return {str(i): read(interpreter, detail) for i, detail in enumerate(interpreter.get_output_details())}

    def give(self, values: Any, stage: Any) -> None:
        """Set the inputs of the first subgraph; allocate its tensors if their shapes have changed."""
        interpreter = self.interpreter
        details = interpreter.get_input_details()
        if len(details) != len(values):
            raise ValueError(f"the model has {len(details)} inputs, got {len(values)}")
        shapes = [value.shape for value in values]
        if shapes != self.shapes:
            for detail, value in zip(details, values):
                if tuple(detail["shape"]) != value.shape:
                    interpreter.resize_tensor_input(detail["index"], value.shape)
            stage("allocating tensors")
            interpreter.allocate_tensors()
            self.shapes = shapes
        for detail, value in zip(details, values):
            if value.size:
                interpreter.set_tensor(detail["index"], settable(value))

    def named(self, signature: str, inputs: Any, stage: Any) -> Any:
        """Run a signature."""
        if not hasattr(self.interpreter, "get_signature_runner"):
            raise NotImplementedError("this release of the runtime cannot run signatures")
        stage(f"looking up signature {signature!r}")
        runner = self.interpreter.get_signature_runner(signature)
        stage(f"invoking signature {signature!r}")
        return call(runner, {name: settable(value) for name, value in inputs.items()})

    def poison(self, signature: Optional[str], inputs: Any, names: Any, stage: Any) -> None:  # noqa: UP045
        """Fill the memory of the outputs of these names, as far as they have any before a step runs."""
        interpreter = self.interpreter
        if signature is None:
            self.give(in_order(inputs), stage)
            details = {str(i): detail for i, detail in enumerate(interpreter.get_output_details())}
            fill = interpreter.set_tensor
        else:
            runner = interpreter.get_signature_runner(signature)
            wrapper, subgraph = runner._interpreter_wrapper, runner._subgraph_index
            call(runner, {name: settable(value) for name, value in inputs.items()})
            details = runner.get_output_details()
            fill = lambda index, value: wrapper.SetTensor(index, value, subgraph)  # noqa: E731
        for detail in (details[name] for name in names):
            size = int(np.prod(detail["shape"])) * np.dtype(detail["dtype"]).itemsize
            value = np.full(size, POISON, np.uint8).view(detail["dtype"]).reshape(detail["shape"])
            with suppress(ValueError):  # a tensor without memory
                fill(detail["index"], value)

    def bound(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Return two functions without arguments: one sets the inputs, the other invokes and is worth timing.

        A runner of a signature does both, and copies the outputs.
        """
        if signature is None:
            values = in_order(inputs)
            return (lambda: self.give(values, stage)), self.interpreter.invoke
        runner = self.interpreter.get_signature_runner(signature)
        values = {name: settable(value) for name, value in inputs.items()}
        return (lambda: None), (lambda: call(runner, values))

    def delegated(self) -> int:
        """Return the number of graph nodes that a delegate put in place of others."""
        return partitions(self.interpreter)


class Micro:
    """TensorFlow Lite Micro's interpreter."""

    def __init__(self, interpreter_class: Any, model: Any) -> None:
        """Load `model`, a path or the bytes of a file."""
        is_file = isinstance(model, str)
        make = interpreter_class.from_file if is_file else interpreter_class.from_bytes
        arena = ARENA_BYTES + 2 * (os.path.getsize(model) if is_file else len(model))
        while True:
            try:
                self.interpreter = make(model, arena_size=arena)
                return
            except Exception:  # the runtime raises one kind of error for all that it cannot prepare
                arena *= 4
                if arena > MOST_ARENA_BYTES:
                    raise

    def step(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Run the first subgraph, which is all that it can run."""
        if signature is not None:
            raise NotImplementedError("TensorFlow Lite Micro runs the first subgraph, not signatures")
        for i, value in enumerate(in_order(inputs)):
            self.interpreter.set_input(value, i)
        stage("invoking")
        self.interpreter.invoke()
        stage("reading the outputs")
        outputs: Dict[str, Any] = {}  # noqa: UP006
        while True:
            try:
                outputs[str(len(outputs))] = self.interpreter.get_output(len(outputs))
            except Exception:  # beyond the last output; there is no call that counts them
                return outputs

    def poison(self, signature: Optional[str], inputs: Any, names: Any, stage: Any) -> None:  # noqa: UP045
        """Do nothing: there are no delegates, and every output is written."""

    def bound(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Return a function that sets the inputs, and one that invokes: see Desktop.bound."""
        values = in_order(inputs)
        return (lambda: [self.interpreter.set_input(value, i) for i, value in enumerate(values)]), (
            self.interpreter.invoke
        )

    def delegated(self) -> int:
        """Return 0: there are no delegates."""
        return 0


def in_order(inputs: Any) -> Any:
    """Return inputs that are named by position, in order."""
    return [inputs[name] for name in sorted(inputs, key=int)]


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


def call(runner: Any, inputs: Any) -> Any:
    """Run a signature; return its outputs by name, None for those without a value."""
    try:
        return runner(**inputs)
    except ValueError as error:
        if NO_VALUE not in str(error):
            raise
        return readable(runner)


def readable(runner: Any) -> Any:
    """Return the outputs of a signature that has run, None for those without a value."""
    outputs: Dict[str, Any] = {}  # noqa: UP006
    details = runner.get_output_details()
    for name, detail in details.items():
        outputs[name] = None
        if 0 in detail["shape"]:
            outputs[name] = np.empty(detail["shape"], detail["dtype"])
            continue
        try:
            outputs[name] = runner._interpreter_wrapper.GetTensor(detail["index"], runner._subgraph_index)
        except ValueError as error:
            if NO_VALUE not in str(error):
                raise
    return outputs


def partitions(interpreter: Any) -> int:
    """Return the number of graph nodes that a delegate put in place of others."""
    try:
        return sum(detail["op_name"] == "DELEGATE" for detail in interpreter._get_ops_details())
    except Exception:  # a private function, which some release may lack
        return 0


def _litert() -> Any:
    from ai_edge_litert import interpreter

    return desktop(interpreter.Interpreter, interpreter.OpResolverType)


def _tensorflow() -> Any:
    import tensorflow

    return desktop(tensorflow.lite.Interpreter, tensorflow.lite.experimental.OpResolverType)


def _tflite_runtime() -> Any:
    from tflite_runtime import interpreter

    return desktop(interpreter.Interpreter, interpreter.OpResolverType)


def _tflite_micro() -> Any:
    from tflite_micro import runtime

    return lambda model, job: Micro(runtime.Interpreter, model)


def desktop(interpreter_class: Any, resolvers: Any) -> Any:
    """Return the function that loads a model."""
    return lambda model, job: Desktop(
        interpreter_class, model, job["threads"], experimental_op_resolver_type=getattr(resolvers, job["resolver"])
    )


def _tflq() -> Any:
    interpreter = import_module("tflq").Interpreter  # this file may not import tflq, which is above it
    return lambda model, job: Desktop(interpreter, model, job["threads"], **job["options"])


def adapter_of(job: Any) -> Any:
    """Return a function that imports a job's system and returns its loader, and the distributions that provide it.

    Adapters that are not listed here are foreign systems.
    """
    name = job["adapter"]
    if name in ADAPTERS:
        return ADAPTERS[name]
    return (lambda: import_module("tflq_foreign").ready(name, job["settings"])), tuple(job["packages"])


#: adapter -> (imports it and returns its loader, the distributions that may provide it)
ADAPTERS = {
    "litert": (_litert, ("ai-edge-litert", "ai-edge-litert-nightly")),
    "tensorflow": (_tensorflow, ("tensorflow", "tensorflow-cpu", "tf-nightly")),
    "tflite_runtime": (_tflite_runtime, ("tflite-runtime",)),
    "tflite_micro": (_tflite_micro, ("tflite-micro",)),
    "tflq": (_tflq, ("tflq",)),
}
