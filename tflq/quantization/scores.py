"""The scores that decide a model's first output, and the divergence between distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import ModelError
from tflq.quantization.scheme.float_graph import FloatModel

Array = NDArray[Any]
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scores:
    """The tensor that decides the first output, and the beta of the SOFTMAX that reads it (None: no SOFTMAX)."""

    tensor: int
    beta: float | None


def scores_of(floats: FloatModel) -> Scores:
    """Return the input of the last SOFTMAX if it makes the first output of rows, else that output.

    Raises:
        ModelError: The model has no output.
    """
    if not floats.graph.outputs:
        raise ModelError("the model has no output, by which configurations are judged")
    output = floats.graph.outputs[0]
    maker = floats.graph.maker(output)
    if maker is None or maker.name != "SOFTMAX" or len(floats.graph.tensors[output].shape) != 2:
        return Scores(output, None)
    return Scores(maker.inputs[0], float(maker.options["beta"]) if maker.options else 1.0)


def divergences(reference: Array, scores: Array) -> Reals:
    """Return the KL divergences, nats, of the distributions that scores define, by row: [..., C] to [...]."""
    logs = _log_shares(np.asarray(reference, np.float64))
    sums: Reals = np.sum(np.exp(logs) * (logs - _log_shares(np.asarray(scores, np.float64))), axis=-1)
    return sums


def _log_shares(scores: Reals) -> Reals:
    """Return the logarithm of SOFTMAX with beta 1."""
    below = scores - scores.max(axis=-1, keepdims=True)
    shares: Reals = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return shares
