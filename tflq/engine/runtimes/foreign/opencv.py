"""OpenCV's dnn module. Quantized models need its classic engine, which is the default here.

Images are in the order NCHW there, so tensors of four axes are transposed on the way in and out. Several inputs are set
by the names of their tensors, which are in0, in1 ... in suites; other models of several inputs are refused.
"""

from __future__ import annotations

from typing import Any

_IN, _OUT = (0, 3, 1, 2), (0, 2, 3, 1)


def ready(settings: Any, tools: Any) -> Any:
    """Import OpenCV; return a function that reads a model."""
    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    engine = settings["engine"]
    words = {} if engine == "default" else {"engine": getattr(cv2.dnn, f"ENGINE_{engine.upper()}")}

    def turned(value: Any, axes: Any) -> Any:
        return np.ascontiguousarray(value.transpose(axes)) if value.ndim == len(axes) else value

    def load(path: str) -> Any:
        try:
            net = cv2.dnn.readNetFromTFLite(path, **words)
            names = net.getUnconnectedOutLayersNames()
        except cv2.error as error:
            raise RuntimeError(said(error)) from error

        def run(inputs: Any) -> Any:
            try:
                for number, value in enumerate(inputs):
                    net.setInput(turned(value, _IN), "" if len(inputs) == 1 else f"in{number}")
                return [turned(net.forward(name), _OUT) for name in names]
            except cv2.error as error:
                raise RuntimeError(said(error)) from error

        return run

    def said(error: Any) -> str:
        """Return an error's text without the place in OpenCV's source."""
        return f"{error.func}: {error.err or error}"

    return load
