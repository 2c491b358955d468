"""OpenVINO's CPU plugin as a target. `pip install openvino`; run with that environment's Python.

Its default precision is bfloat16 on processors that have it; `--bfloat16` keeps that, float32 is asked for otherwise.
"""

import sys

import openvino
from serving import serve

PRECISION = {} if "--bfloat16" in sys.argv else {"INFERENCE_PRECISION_HINT": "f32"}
CORE = openvino.Core()


def load(path):
    """Compile a model for the CPU, for one thread."""
    config = {**PRECISION, "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1}
    compiled = CORE.compile_model(CORE.read_model(path), "CPU", config)

    def run(inputs):
        results = compiled(inputs)
        return [results[output] for output in compiled.outputs]

    return run


if __name__ == "__main__":
    serve(load)
