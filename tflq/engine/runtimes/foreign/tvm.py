"""Apache TVM: its importer into relax, compiled by LLVM for this processor."""

from __future__ import annotations

from typing import Any


def ready(settings: Any, tools: Any) -> Any:
    """Import TVM; return a function that imports, compiles and loads a model."""
    import tflite
    import tvm
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite

    def load(path: str) -> Any:
        with open(path, "rb") as file:
            model = tflite.Model.GetRootAsModel(file.read(), 0)
        module = relax.transform.DecomposeOpsForInference()(from_tflite(model))
        machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())

        def run(inputs: Any) -> Any:
            result = machine["main"](*[tvm.runtime.tensor(value) for value in inputs])
            results = [result] if hasattr(result, "numpy") else result
            return [value.numpy() for value in results]

        return run

    return load
