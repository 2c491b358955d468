"""The TOSA reference model over the converter to TOSA."""

from __future__ import annotations

import os
import tempfile
from typing import Any


def ready(settings: Any, tools: Any) -> Any:
    """Find the programs; return a function that converts a model to TOSA, which a run computes."""
    import numpy as np

    names = ("tosa-converter-for-tflite", "tosa-opt", "tosa_reference_model")
    converter, serializer, evaluator = map(tools.program, names)

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            bytecode, flatbuffer = (os.path.join(folder, name) for name in ("model.mlirbc", "model.tosa"))
            tools.call(converter, path, "--bytecode", "-o", bytecode)
            written = f"--tosa-flatbuffer-filename={flatbuffer}"
            tools.call(serializer, bytecode, "--tosa-serialize", written, "-o", os.devnull)
            with open(flatbuffer, "rb") as file:
                graph = file.read()
        return lambda inputs: evaluate(graph, inputs)

    def evaluate(graph: bytes, inputs: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "model.tosa"), "wb") as file:
                file.write(graph)
            given = [f"TosaInput_{number}" for number in range(len(inputs))]
            for name, value in zip(given, inputs):  # noqa: B905 (Python 3.8)
                np.save(os.path.join(folder, f"{name}.npy"), value)
            files = ",".join(f"{name}.npy" for name in given)
            tools.call(
                evaluator,
                "--tosa_file=model.tosa",
                f"--flatbuffer_dir={folder}",
                f"--ifm_name={','.join(given)}",
                f"--ifm_file={files}",
                "--ofm_name=TosaOutput_0",
                "--ofm_file=out.npy",
                f"--output_dir={folder}",
            )
            return [np.load(os.path.join(folder, "out.npy"))]

    return load
