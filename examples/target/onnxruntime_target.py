"""ONNX Runtime over tf2onnx as a target. `pip install onnxruntime tf2onnx tensorflow`; run with that Python."""

import onnxruntime
import tf2onnx
from serving import serve


def load(path):
    """Convert a model to ONNX, and load it."""
    converted, _ = tf2onnx.convert.from_tflite(path, opset=18)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(converted.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def run(inputs):
        return session.run(None, dict(zip(names, inputs, strict=True)))

    return run


if __name__ == "__main__":
    serve(load)
