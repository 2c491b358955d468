"""IREE over the converter to TOSA, compiled for this processor."""

from __future__ import annotations

import os
import tempfile
from typing import Any

_FLAGS = (
    "--iree-input-type=tosa",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


def ready(settings: Any, tools: Any) -> Any:
    """Import IREE; return a function that converts a model to TOSA, compiles it and loads it."""
    import iree.runtime as rt

    converter, printer, compiler = map(tools.program, ("tosa-converter-for-tflite", "tosa-opt", "iree-compile"))

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            bytecode, text, binary = (os.path.join(folder, name) for name in ("model.bc", "model.mlir", "model.vmfb"))
            tools.call(converter, path, "-o", bytecode, "--bytecode")
            with open(text, "w") as file:
                file.write(tools.call(printer, "--mlir-print-op-generic", bytecode))
            tools.call(compiler, *_FLAGS, text, "-o", binary)
            with open(binary, "rb") as compiled:
                data = compiled.read()
        config = rt.Config("local-sync")
        module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, data), config)

        def run(inputs: Any) -> Any:
            result = module["main"](*inputs)
            results = result if isinstance(result, (tuple, list)) else [result]
            return [value.to_host() for value in results]

        return run

    return load
