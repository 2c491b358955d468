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
        session = plainly(
            lambda: onnxruntime.InferenceSession(converted.SerializeToString(), options, ["CPUExecutionProvider"])
        )
        names = [value.name for value in session.get_inputs()]
        return lambda inputs: plainly(lambda: session.run(None, dict(zip(names, inputs))))  # noqa: B905 (Python 3.8)

    return load


def plainly(call: Any) -> Any:
    """Call a function of ONNX Runtime; its errors are raised without their code and state."""
    try:
        return call()
    except Exception as error:
        text = str(error).split(" : ", 3)[-1].replace("This is an invalid model. ", "")
        raise RuntimeError(text) from error
