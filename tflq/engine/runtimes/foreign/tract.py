"""tract over tf2onnx."""

from __future__ import annotations

import os
import tempfile
from typing import Any


def ready(settings: Any, tools: Any) -> Any:
    """Import both; return a function that converts a model to ONNX and loads it."""
    import tf2onnx
    import tract

    reader = tract.onnx()

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "model.onnx")
            tf2onnx.convert.from_tflite(path, opset=int(settings["opset"]), output_path=place)
            model = reader.load(place)
        if hasattr(model, "into_model"):
            model = model.into_model()
        program = model.into_runnable()
        return lambda inputs: [value.to_numpy() for value in program.run(list(inputs))]

    return load
