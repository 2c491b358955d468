"""The scores that decide a model's first judged output."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.comparison.inspection.layout import layout_of
from tflq.errors import ModelError
from tflq.quantization.scheme.float_graph import FloatModel


@dataclass(frozen=True, slots=True)
class Scores:
    """The tensor that decides the first judged output, and the beta of the SOFTMAX that reads it (None: no SOFTMAX)."""

    tensor: int
    beta: float | None


def scores_of(floats: FloatModel) -> Scores:
    """Return the input of the last SOFTMAX if it makes the first judged output of rows, else that output.

    Raises:
        ModelError: The model has no output.
    """
    if not floats.graph.outputs:
        raise ModelError("the model has no output, by which configurations are judged")
    output = layout_of(floats.graph).tensors[0]
    maker = floats.graph.maker(output)
    if maker is None or maker.name != "SOFTMAX" or len(floats.graph.tensors[output].shape) != 2:
        return Scores(output, None)
    return Scores(maker.inputs[0], float(maker.options["beta"]) if maker.options else 1.0)
