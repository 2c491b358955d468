"""A program that runs one model in a runtime of its Python, sample after sample.

It is stand-alone: it needs only Python 3.7, NumPy and the runtime. Usage: python worker.py ADAPTER MODEL [RESOLVER].
The first line of stdout is JSON: the runtime's name, and the sizes of the outputs in bytes. Then stdin holds the bytes
of all inputs of one sample after another, and stdout those of all outputs.
"""
# ruff: noqa: B905, UP006, UP035 (Python 3.7)

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, List

# Its own folder holds modules whose names hide others.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import numpy as np  # noqa: E402


class Desktop:
    """LiteRT, tflite-runtime or TensorFlow."""

    def __init__(self, module: str, model: str, resolver: str) -> None:
        runtime = importlib.import_module(module)
        options = {"num_threads": 1} if resolver else {}
        if resolver:
            options["experimental_op_resolver_type"] = getattr(runtime.OpResolverType, resolver)
        self.interpreter = runtime.Interpreter(model_path=model, **options)
        self.interpreter.allocate_tensors()
        self.inputs = [(detail["dtype"], tuple(detail["shape"])) for detail in self.interpreter.get_input_details()]
        self.outputs = self.interpreter.get_output_details()

    def sizes(self) -> List[int]:
        """Return the sizes of the outputs in bytes."""
        return [int(np.prod(d["shape"], dtype=np.int64)) * np.dtype(d["dtype"]).itemsize for d in self.outputs]

    def run(self, values: List[Any]) -> List[Any]:
        """Return the outputs for one sample."""
        for detail, value in zip(self.interpreter.get_input_details(), values):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(detail["index"]) for detail in self.outputs]


class Micro:
    """TensorFlow Lite Micro from the tflite-micro wheel."""

    ARENA_BYTES = 512 << 20

    def __init__(self, model: str) -> None:
        from tflite_micro import runtime

        self.interpreter = runtime.Interpreter.from_file(model, arena_size=self.ARENA_BYTES)
        self.inputs = [self._form(self.interpreter.get_input_details, i) for i in self._places("input")]
        self.outputs = [self._form(self.interpreter.get_output_details, i) for i in self._places("output")]

    def _places(self, kind: str) -> List[int]:
        """Return the positions of inputs or outputs; there is no call that counts them."""
        details, count = getattr(self.interpreter, "get_" + kind + "_details"), 0
        while True:
            try:
                details(count)
            except Exception:
                return list(range(count))
            count += 1

    @staticmethod
    def _form(details: Any, place: int) -> Any:
        found = details(place)
        return found["dtype"], tuple(found["shape"])

    def sizes(self) -> List[int]:
        """Return the sizes of the outputs in bytes."""
        return [int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize for dtype, shape in self.outputs]

    def run(self, values: List[Any]) -> List[Any]:
        """Return the outputs for one sample."""
        for i, value in enumerate(values):
            self.interpreter.set_input(value, i)
        self.interpreter.invoke()
        return [self.interpreter.get_output(i) for i in range(len(self.outputs))]


class OpenVino:
    """OpenVINO's CPU plugin in float32."""

    def __init__(self, model: str) -> None:
        import openvino

        hints = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1}
        core = openvino.Core()
        graph = core.read_model(model)
        graph.reshape({port: [max(1, size.min_length) for size in port.partial_shape] for port in graph.inputs})
        self.compiled = core.compile_model(graph, "CPU", hints)
        self.inputs = [(port.get_element_type().to_dtype(), tuple(port.shape)) for port in self.compiled.inputs]
        self.ports = list(self.compiled.outputs)

    def sizes(self) -> List[int]:
        """Return the sizes of the outputs in bytes."""
        return [int(np.prod(tuple(p.shape))) * p.get_element_type().to_dtype().itemsize for p in self.ports]

    def run(self, values: List[Any]) -> List[Any]:
        """Return the outputs for one sample."""
        made = self.compiled(values)
        return [made[port] for port in self.ports]


class Tvm:
    """Apache TVM, compiled for this processor by LLVM."""

    def __init__(self, model: str) -> None:
        import tflite
        import tvm
        from tvm import relax
        from tvm.relax.frontend.tflite import from_tflite

        with open(model, "rb") as file:
            graph = tflite.Model.GetRootAsModel(file.read(), 0)
        module = relax.transform.DecomposeOpsForInference()(from_tflite(graph))
        self.tvm, self.machine = tvm, relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
        main = module["main"]
        self.inputs = [_tvm_form(parameter.ty) for parameter in main.params]
        self.forms = [_tvm_form(form) for form in getattr(main.ret_ty, "fields", [main.ret_ty])]

    def sizes(self) -> List[int]:
        """Return the sizes of the outputs in bytes."""
        return [int(np.prod(shape)) * np.dtype(dtype).itemsize for dtype, shape in self.forms]

    def run(self, values: List[Any]) -> List[Any]:
        """Return the outputs for one sample."""
        made = self.machine["main"](*[self.tvm.runtime.tensor(value) for value in values])
        return [part.numpy() for part in (made if len(self.forms) > 1 else [made])]


def _tvm_form(info: Any) -> Any:
    return str(info.dtype), tuple(int(size) for size in info.shape)


ADAPTERS = {
    "ai-edge-litert": lambda model, resolver: Desktop("ai_edge_litert.interpreter", model, resolver),
    "tflite-runtime": lambda model, resolver: Desktop("tflite_runtime.interpreter", model, resolver),
    "tensorflow-cpu": lambda model, resolver: Desktop("tensorflow.lite.python.interpreter", model, resolver),
    "tflite-micro": lambda model, resolver: Micro(model),
    "openvino": lambda model, resolver: OpenVino(model),
    "apache-tvm": lambda model, resolver: Tvm(model),
}
ADAPTERS["ai-edge-litert-nightly"] = ADAPTERS["ai-edge-litert"]


def version_of(package: str) -> str:
    """Return the installed version of a package; Python 3.7 has no importlib.metadata."""
    try:
        return importlib.import_module("importlib.metadata").version(package)
    except ImportError:
        return ""


def main(adapter: str, model: str, resolver: str = "") -> None:
    """Run samples until the input ends."""
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # a runtime's prints must not enter the answers
        runtime = ADAPTERS[adapter](model, resolver)
        about = {"name": (adapter + " " + version_of(adapter)).strip(), "bytes": runtime.sizes()}
        answers.write(json.dumps(about).encode() + b"\n")
        answers.flush()
        while True:
            values = []
            for dtype, shape in runtime.inputs:
                size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                data = requests.read(size)
                if len(data) != size:
                    return
                values.append(np.frombuffer(data, dtype).reshape(shape).copy())
            for made in runtime.run(values):
                answers.write(np.ascontiguousarray(made).tobytes())
            answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
