"""The TOSA reference model over the converter to TOSA as a target. Run with the Python of an environment that has both.

`pip install tosa-converter-for-tflite tosa-tools numpy`.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
from serving import serve

BIN = os.path.dirname(sys.executable)
SECONDS = 120


def _call(tool, *words):
    """Run a tool of the environment; other tools, such as a debugger that the model calls, are not found."""
    done = subprocess.run(
        [os.path.join(BIN, tool), *words], capture_output=True, text=True, timeout=SECONDS, env={"PATH": BIN}
    )
    if done.returncode:
        raise RuntimeError(f"{tool}: {(done.stderr or done.stdout).strip()[:200]}")


def load(path):
    """Convert a model to TOSA; a run computes it in the reference model."""
    with tempfile.TemporaryDirectory() as folder:
        bytecode, flatbuffer = (os.path.join(folder, name) for name in ("model.mlirbc", "model.tosa"))
        _call("tosa-converter-for-tflite", path, "--bytecode", "-o", bytecode)
        written = f"--tosa-flatbuffer-filename={flatbuffer}"
        _call("tosa-opt", bytecode, "--tosa-serialize", written, "-o", os.devnull)
        with open(flatbuffer, "rb") as file:
            graph = file.read()
    return lambda inputs: _evaluated(graph, inputs)


def _evaluated(graph, inputs):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "model.tosa"), "wb") as file:
            file.write(graph)
        names = [f"TosaInput_{i}" for i in range(len(inputs))]
        for name, value in zip(names, inputs, strict=True):
            np.save(os.path.join(folder, f"{name}.npy"), value)
        given = [f"--ifm_name={','.join(names)}", f"--ifm_file={','.join(f'{name}.npy' for name in names)}"]
        taken = ["--ofm_name=TosaOutput_0", "--ofm_file=out.npy", f"--output_dir={folder}"]
        _call("tosa_reference_model", "--tosa_file=model.tosa", f"--flatbuffer_dir={folder}", *given, *taken)
        return [np.load(os.path.join(folder, "out.npy"))]


if __name__ == "__main__":
    serve(load)
