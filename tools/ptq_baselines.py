"""Quantize one float model with another tool, for comparison: one job per process.

    python tools/ptq_baselines.py TOOL[:ALGORITHM] MODE MODEL.tflite CALIBRATION.npy OUT.tflite

TOOL is tensorflow, ai-edge-quantizer or litert-quantizer; ALGORITHM is one of the last two's, as OCTAV or MSE (the
default: MIN_MAX_UNIFORM_QUANT). MODE is int8, int8x4 or int16x8; tensorflow takes int8 alone. CALIBRATION holds samples
along axis 0 for the model's only input. Prints one line of JSON: seconds without imports, peak memory in MiB. Needs
only the named tool and NumPy; tools/bench_ptq.py calls it.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

#: Bits of activations and of weights.
BITS = {"int8": (8, 8), "int8x4": (8, 4), "int16x8": (16, 8)}


def tensorflow(model: Path, samples: np.ndarray, out: Path) -> float:
    """Quantize a float .tflite by TensorFlow's Calibrator and the converter's quantizer; return seconds."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.lite.python.convert import mlir_quantize
    from tensorflow.lite.python.optimize.calibrator import Calibrator

    start = time.perf_counter()
    calibrated = Calibrator(model.read_bytes()).calibrate(lambda: ([row[None]] for row in samples))
    kind = tf.int8.as_datatype_enum
    out.write_bytes(mlir_quantize(calibrated, input_data_type=kind, output_data_type=kind))
    return time.perf_counter() - start


def quantizer(package: str, algorithm: str, mode: str, model: Path, samples: np.ndarray, out: Path) -> float:
    """Quantize by ai-edge-quantizer, or by litert-quantizer, its later name; return seconds. Needs a signature."""
    from ai_edge_litert.interpreter import Interpreter

    parts = ("quantizer", "recipe_manager", "algorithm_manager", "qtyping")
    work, manager, algorithms, kinds = (importlib.import_module(f"{package}.{part}") for part in parts)
    signatures = Interpreter(str(model)).get_signature_list()
    key = next(iter(signatures))
    (name,) = signatures[key]["inputs"]
    activations, weights = BITS[mode]
    recipes = manager.RecipeManager()
    chosen = algorithms.AlgorithmName[algorithm]
    recipes.add_static_config(".*", kinds.TFLOperationName.ALL_SUPPORTED, activations, weights, algorithm_key=chosen)
    start = time.perf_counter()
    job = work.Quantizer(str(model))
    job.load_quantization_recipe(recipes.get_quantization_recipe())
    result = job.quantize(job.calibrate({key: [{name: row[None]} for row in samples]}))
    out.write_bytes(bytes(result.quantized_model))
    return time.perf_counter() - start


def main() -> None:
    """Do the job of the arguments."""
    tool, mode, *paths = sys.argv[1:]
    model, samples, out = (Path(path) for path in paths)
    name, _, algorithm = tool.partition(":")
    if name == "tensorflow":
        seconds = tensorflow(model, np.load(samples), out)
    else:
        package = name.replace("-", "_")
        seconds = quantizer(package, algorithm or "MIN_MAX_UNIFORM_QUANT", mode, model, np.load(samples), out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


if __name__ == "__main__":
    main()
