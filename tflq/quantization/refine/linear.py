"""Operators with weights as matrix products: y[o] = bias[o] + sum over k of weights[o, k] * row[k], row by row.

CONV_2D and DEPTHWISE_CONV_2D take a patch of the image for each output pixel as row, FULLY_CONNECTED the last
dimension. Output channels that see other inputs than their neighbours (depthwise, groups) lie in groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.kernels.geometry import Window, axis, patches_into
from tflq.quantization.floats import FloatModel
from tflq.quantization.operands import Multiplied
from tflq.quantization.params import Array

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """One operator of a float model: G groups of O output channels, each of which sees K inputs."""

    multiplied: Multiplied
    groups: int
    shape: tuple[int, ...]  # of the weights
    depthwise: bool  # weights are 1, KH, KW, G * O instead of G * O, KH, KW, C / G
    steps: tuple[int, ...] | None  # padding, stride_h, stride_w, dilation_h, dilation_w; None: rows lie side by side

    def matrix(self, weights: Array) -> Array:
        """The weights, or anything of their shape, as [G, O, K]."""
        if not self.depthwise:
            return weights.reshape(self.groups, self.shape[0] // self.groups, -1)
        taps = weights.reshape(-1, self.groups, self.shape[3] // self.groups)
        return np.ascontiguousarray(taps.transpose(1, 2, 0))

    def weights(self, matrix: Array) -> Array:
        """The inverse of `matrix`."""
        if not self.depthwise:
            return matrix.reshape(self.shape)
        return np.ascontiguousarray(matrix.transpose(2, 0, 1)).reshape(self.shape)

    def rows(self, x: Array) -> Array:
        """What the channels of each group see, [G, N, K]: K counts kernel rows, columns, channels."""
        if self.steps is None:
            return x.reshape(1, -1, self.shape[1])
        window = self._window(x.shape)
        patches = np.empty((x.shape[0] * window.out_h * window.out_w, window.taps * x.shape[3]), np.float32)
        patches_into(np.ascontiguousarray(x, np.float32), 0, window, 0, 0, patches)
        if self.groups == 1:
            return patches[None]
        by_group = patches.reshape(len(patches), window.taps, self.groups, -1).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(by_group).reshape(self.groups, len(patches), -1)

    def _window(self, image: tuple[int, ...]) -> Window:
        assert self.steps is not None
        padding, *steps = self.steps
        vertical = axis(padding, image[1], self.shape[1], steps[0], steps[2])
        horizontal = axis(padding, image[2], self.shape[2], steps[1], steps[3])
        assert vertical is not None, "the model has been run"
        assert horizontal is not None, "the model has been run"
        return Window.over(vertical, horizontal)


def linear(model: FloatModel, m: Multiplied) -> Linear | None:
    """An operator's weights as matrices; None where it is none of the three kinds."""
    op, options, shape = (
        model.op(m.operator),
        model.graph.operators[m.operator].options,
        model.constants[m.tensor].shape,
    )
    if op == "FULLY_CONNECTED":
        return Linear(m, 1, shape, depthwise=False, steps=None)
    if op not in ("CONV_2D", "DEPTHWISE_CONV_2D") or options is None:
        return None
    names = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    steps = tuple(int(options[name]) for name in names)
    channels = model.graph.tensors[m.data].shape[3]
    depthwise = op == "DEPTHWISE_CONV_2D"
    return Linear(m, channels if depthwise else channels // shape[3], shape, depthwise, steps)
