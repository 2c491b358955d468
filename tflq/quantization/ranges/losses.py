"""The loss that a range causes at an operator's output, computed by the operator itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.fidelity import divergences
from tflq.quantization.params import Range
from tflq.quantization.ranges.layers import Layer
from tflq.quantization.ranges.search.objectives import Loss, distance
from tflq.quantization.ranges.search.points import Points, from_rows, rows_of
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.recipe.ranging import Objective

Reals = NDArray[np.float64]


def weights_loss(layer: Layer, axis: int | None, quantizer: Quantizer, objective: Objective) -> Loss:
    """Return the loss of weight ranges [C]: the change of each output channel of the operator."""
    rows, shape = rows_of(layer.weights, axis), layer.weights.shape
    aim = _by_channel(layer.output(layer.data, layer.weights), axis)
    error, values = distance(objective), rows.astype(np.float64)

    def loss(range_: Range) -> Reals:
        weights = from_rows(quantizer.nearest(values, range_), shape, axis).astype(np.float32)
        return error(aim, _by_channel(layer.output(layer.data, weights), axis).values)

    return loss


def data_loss(
    layers: Sequence[Layer], weights: Sequence[NDArray[np.float32]], quantizer: Quantizer, objective: Objective
) -> Loss:
    """Return the loss of a data range: the change of the outputs of the operators that read the data.

    Outputs are in units of their own root mean square. `weights` are the weights that the operators will use.
    """
    aims = [layer.output(layer.data, layer.weights).astype(np.float64) for layer in layers]
    units = [1 / max(float(np.sqrt(np.mean(np.square(aim)))), 1e-30) for aim in aims]
    together = Points.of_values(np.concatenate([(aim * unit).ravel() for aim, unit in zip(aims, units, strict=True)]))
    error = distance(objective)

    def loss(range_: Range) -> Reals:
        outputs = []
        for layer, own, unit in zip(layers, weights, units, strict=True):
            data = tuple(
                quantizer.nearest(part.reshape(1, -1).astype(np.float64), range_).reshape(part.shape).astype(np.float32)
                for part in layer.data
            )
            outputs.append((layer.output(data, own) * unit).ravel())
        return error(together, np.concatenate(outputs)[None].astype(np.float64))

    return loss


def scores_loss(scores: NDArray[np.float32], beta: float, quantizer: Quantizer) -> Loss:
    """Return the loss of a range of scores [N, C]: the mean divergence of their SOFTMAX's distributions."""
    aim, row = beta * scores.astype(np.float64), scores.reshape(1, -1).astype(np.float64)

    def loss(range_: Range) -> Reals:
        near = beta * quantizer.nearest(row, range_).reshape(aim.shape)
        return np.array([divergences(aim, near).mean()])

    return loss


def _by_channel(output: NDArray[np.float32], axis: int | None) -> Points:
    """Return outputs [N, C] with one row per channel, or as one row if the weights have one range."""
    return Points.of_values(output, None if axis is None else 1)
