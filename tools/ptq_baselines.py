"""Quantize one float model to full-integer int8 with another tool, for comparison: one job per process.

    python tools/ptq_baselines.py tensorflow|ai-edge-quantizer MODEL.tflite CALIBRATION.npy OUT.tflite [float32|int8]

CALIBRATION holds samples along axis 0 for the model's only input. Prints one line of JSON: seconds without imports,
peak memory in MiB. Needs only the named tool and NumPy; tools/bench_ptq.py calls it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np


def tensorflow(model: Path, samples: np.ndarray, out: Path, edge: str) -> float:
    """Quantize a float .tflite by TensorFlow's Calibrator and the converter's quantizer; return seconds."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.lite.python.convert import mlir_quantize
    from tensorflow.lite.python.optimize.calibrator import Calibrator

    start = time.perf_counter()
    calibrated = Calibrator(model.read_bytes()).calibrate(lambda: ([row[None]] for row in samples))
    kind = getattr(tf, edge).as_datatype_enum
    out.write_bytes(mlir_quantize(calibrated, input_data_type=kind, output_data_type=kind))
    return time.perf_counter() - start


def ai_edge_quantizer(model: Path, samples: np.ndarray, out: Path, edge: str) -> float:
    """Quantize by ai-edge-quantizer's default static int8 recipe; return seconds. The model needs a signature."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe

    signatures = Interpreter(str(model)).get_signature_list()
    key = next(iter(signatures))
    (name,) = signatures[key]["inputs"]
    start = time.perf_counter()
    work = quantizer.Quantizer(str(model))
    work.load_quantization_recipe(recipe.static_wi8_ai8())
    result = work.quantize(work.calibrate({key: [{name: row[None]} for row in samples]}))
    out.write_bytes(bytes(result.quantized_model))
    return time.perf_counter() - start


TOOLS = {"tensorflow": tensorflow, "ai-edge-quantizer": ai_edge_quantizer}


def main() -> None:
    """Do the job of the arguments."""
    tool, model, samples, out, *edge = sys.argv[1:]
    seconds = TOOLS[tool](Path(model), np.load(samples), Path(out), *(edge or ["int8"]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


if __name__ == "__main__":
    main()
