"""Float models from the command line: `.tflite` files, and formats that are converted first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.engine.api.subject import Subject


def float_subject(path: str, python: str | None) -> Subject:
    """Return the model at a path; a converter of the Python at `python` reads Keras, SavedModel and ONNX."""
    from tflq.engine.api.subject import subject
    from tflq.engine.runtimes.conversion import converter_of

    if not converter_of(path):
        return subject(path)
    from tflq.quantization.source import convert_model

    model, made = convert_model(path, python)
    float_model = subject(model)
    return replace(float_model, facts=replace(float_model.facts, path=path, converter=made.by, python=python or ""))
