"""A program for this machine around TensorFlow Lite Micro with any kernels, as tools/build_micro.py builds it.

Any program will do that gets a model's path, reads the bytes of all inputs from standard input, and writes a line of
JSON with the sizes of the outputs in bytes ("bytes"), then the outputs. Outputs have no types, so that it can only be a
target.
"""

from __future__ import annotations

import io
import json
import shlex
import subprocess
from typing import Any

#: Seconds that one run may take.
SECONDS = 120


def ready(settings: Any, tools: Any) -> Any:
    """Return a function that returns a function which runs the program once: arrays to bytes of arrays."""
    import numpy as np

    words = shlex.split(settings["program"])
    if not words:
        raise ImportError("name the program: micro-program program=PATH")

    def load(path: str) -> Any:
        def run(inputs: Any) -> Any:
            given = b"".join(np.ascontiguousarray(value).tobytes() for value in inputs)
            done = subprocess.run([*words, path], input=given, capture_output=True, timeout=SECONDS)
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

    return load
