"""Float models from the command line: `.tflite` files, and formats that TensorFlow converts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.engine.api.subject import Subject


def float_subject(path: str, python: str | None) -> Subject:
    """Return the model at a path; TensorFlow of the Python at `python` converts a Keras file or SavedModel."""
    from tflq.engine.api.subject import subject
    from tflq.engine.runtimes.conversion import converted, is_of_tensorflow

    if not is_of_tensorflow(path):
        return subject(path)
    float_model = subject(converted(path, python))
    return replace(float_model, facts=replace(float_model.facts, path=path))
