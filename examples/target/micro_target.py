"""TensorFlow Lite Micro with CMSIS-NN's kernels, compiled for this machine, as a target.

Build a program with tools/build_micro.py, and name it:

    tflq learn --target "python examples/target/micro_target.py RUNTIMES/tflm-cmsis-nn" -o cmsis-nn.yaml

Any program will do that gets a model's path, reads the bytes of all inputs from standard input, and writes a line of
JSON with the sizes of the outputs in bytes ("bytes"), then the outputs. Needs NumPy only.
"""

import io
import json
import subprocess
import sys

import numpy as np
from serving import serve

SECONDS = 120


def load(path):
    """Return a function that runs the program once: inputs to flat arrays of bytes."""
    program = sys.argv[1:-1]

    def run(inputs):
        given = b"".join(np.ascontiguousarray(value).tobytes() for value in inputs)
        done = subprocess.run([*program, path], input=given, capture_output=True, timeout=SECONDS)
        if done.returncode:
            said = done.stderr.decode(errors="replace").split("\n")[0]
            raise RuntimeError(f"exit code {done.returncode}: {said}")
        line, _, data = done.stdout.partition(b"\n")
        sizes = json.loads(line)["bytes"]
        if len(data) != sum(sizes):
            raise RuntimeError(f"{len(data)} bytes of outputs, not {sum(sizes)}")
        stream = io.BytesIO(data)
        return [stream.read(size) for size in sizes]

    return run


if __name__ == "__main__":
    serve(load)
