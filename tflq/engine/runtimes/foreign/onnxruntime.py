"""ONNX Runtime over tf2onnx, on the CPU with one thread."""

from __future__ import annotations

from typing import Any


def ready(settings: Any, tools: Any) -> Any:
    """Import both; return a function that converts a model to ONNX and loads it."""
    import onnxruntime
    import tf2onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3

    def load(path: str) -> Any:
        converted, _ = tf2onnx.convert.from_tflite(path, opset=int(settings["opset"]))
        session = onnxruntime.InferenceSession(converted.SerializeToString(), options, ["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        return lambda inputs: session.run(None, dict(zip(names, inputs)))  # noqa: B905 (Python 3.8)

    return load
