"""What a range costs at an operator's output, computed by the operator itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.quantization.ranging.layers import Layer
from tflq.quantization.search.laying import Laying
from tflq.quantization.search.objectives import Loss, Objective, distance
from tflq.quantization.search.points import Points, from_rows, rows_of

Reals = NDArray[np.float64]


def weights_loss(layer: Layer, axis: int | None, laying: Laying, objective: Objective) -> Loss:
    """By the range of each channel of the weights: how far the operator's output channels move."""
    rows, shape = rows_of(layer.weights, axis), layer.weights.shape
    wanted = _by_channel(layer.output(layer.data, layer.weights), axis)
    error, values = distance(objective), rows.astype(np.float64)

    def loss(range_: Range) -> Reals:
        weights = from_rows(laying.nearest(values, range_), shape, axis).astype(np.float32)
        return error(wanted, _by_channel(layer.output(layer.data, weights), axis).values)

    return loss


def data_loss(layers: Sequence[Layer], weights: Sequence[NDArray[np.float32]], laying: Laying,
              objective: Objective) -> Loss:  # fmt: skip
    """By the range of the data that all these operators read: how far their outputs move, each in units of its own
    root mean square. `weights` are those with which they will compute; what is aimed at is the float output.
    """
    aims = [layer.output(layer.data, layer.weights).astype(np.float64) for layer in layers]
    units = [1 / max(float(np.sqrt(np.mean(np.square(aim)))), 1e-30) for aim in aims]
    wanted = Points.of_values(np.concatenate([(aim * unit).ravel() for aim, unit in zip(aims, units, strict=True)]))
    error = distance(objective)

    def loss(range_: Range) -> Reals:
        made = []
        for layer, own, unit in zip(layers, weights, units, strict=True):
            data = tuple(
                laying.nearest(part.reshape(1, -1).astype(np.float64), range_).reshape(part.shape).astype(np.float32)
                for part in layer.data
            )
            made.append((layer.output(data, own) * unit).ravel())
        return error(wanted, np.concatenate(made)[None].astype(np.float64))

    return loss


def _by_channel(output: NDArray[np.float32], axis: int | None) -> Points:
    """Outputs [N, C] with a row a channel, or in one row where the weights have one range."""
    return Points.of_values(output, None if axis is None else 1)
