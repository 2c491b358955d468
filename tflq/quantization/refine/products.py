"""Operators with weights as matrix products: y[o] = bias[o] + sum over k of weights[o, k] * row[k], row by row.

The row of CONV_2D and DEPTHWISE_CONV_2D is the image patch of an output pixel; that of FULLY_CONNECTED is the last
dimension. Output channels with different inputs (depthwise, groups) belong to different groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.geometry.patches import patches_into
from tflq.engine.kernels.geometry.windows import Axis, Window, axis
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import Multiplied
from tflq.typing import Array

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Bytes of patches that are held at a time.
_PATCHES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class MatrixProduct:
    """One operator of a float model: G groups of O output channels, each of which sees K inputs.

    K counts kernel rows, columns and channels of the group, in that order.
    """

    multiplied: Multiplied
    groups: int
    shape: tuple[int, ...]  # of the weights
    depthwise: bool  # weights are 1, KH, KW, G * O instead of G * O, KH, KW, C / G
    steps: tuple[int, ...] | None  # padding, stride_h, stride_w, dilation_h, dilation_w; None: rows lie side by side

    @property
    def taps(self) -> int:
        """Pixels that a row sees."""
        return 1 if self.steps is None else self.shape[1] * self.shape[2]

    @property
    def inputs(self) -> int:
        """K."""
        return self.taps if self.depthwise else self.taps * int(self.shape[-1])

    def matrix(self, weights: Array) -> Array:
        """Return the weights, or anything of their shape, as [G, O, K]."""
        if not self.depthwise:
            return weights.reshape(self.groups, self.shape[0] // self.groups, -1)
        taps = weights.reshape(-1, self.groups, self.shape[3] // self.groups)
        return np.ascontiguousarray(taps.transpose(1, 2, 0))

    def weights(self, matrix: Array) -> Array:
        """Return the inverse of `matrix`."""
        if not self.depthwise:
            return matrix.reshape(self.shape)
        return np.ascontiguousarray(matrix.transpose(2, 0, 1)).reshape(self.shape)

    def row_count(self, x: Array) -> int:
        """Return how many rows the input `x` has."""
        if self.steps is None:
            return int(x.size) // self.shape[1]
        vertical, horizontal = self._axes(x.shape)
        return int(x.shape[0]) * vertical.out * horizontal.out

    def blocks(self, x: Floats) -> Iterator[Floats]:
        """Yield the rows of the input `x`, some at a time, [N, taps * C]; padding is 0. All but the last N are equal.

        N is a multiple of 256 if there is more than one block.
        """
        if self.steps is None:
            yield x.reshape(-1, self.shape[1])
            return
        vertical, horizontal = self._axes(x.shape)
        window = Window.over(vertical, horizontal)
        if window.is_pointwise:
            yield x.reshape(-1, x.shape[3])
            return
        width, count = window.taps * x.shape[3], self.row_count(x)
        size = min(count, max(256, _PATCHES // (4 * width) // 256 * 256))
        image = np.ascontiguousarray(x)
        for first in range(0, count, max(1, size)):
            patches = np.empty((min(size, count - first), width), np.float32)
            patches_into(image, 0, window, first, 0, patches)
            yield patches

    def row_sum(self, x: Floats) -> Reals:
        """Return the sum over all rows of the input `x`, [G, K]; padding is 0.

        Every tap of a window sees whole rows and columns of the image. The sums therefore come from two small matrices:
        which image rows each kernel row sees, and likewise for columns.
        """
        if self.steps is None:
            rows: Reals = x.reshape(-1, self.shape[1]).sum(axis=0, dtype=np.float64)
            return rows[None]
        vertical, horizontal = self._axes(x.shape)
        n, height, width, channels = x.shape
        kernel_rows = np.matmul(_seen(vertical), np.ascontiguousarray(x).reshape(n, height, width * channels))
        columns = np.matmul(_seen(horizontal), kernel_rows.reshape(n, vertical.kernel, width, channels))
        return self.by_group(columns.sum(axis=0, dtype=np.float64).reshape(-1))

    def by_group(self, row: Reals) -> Reals:
        """Return a row [taps * C] as [G, K]."""
        grouped = row.reshape(self.taps, self.groups, -1).transpose(1, 0, 2)
        return np.ascontiguousarray(grouped).reshape(self.groups, -1)

    def _axes(self, image: tuple[int, ...]) -> tuple[Axis, Axis]:
        assert self.steps is not None
        padding, *steps = self.steps
        vertical = axis(padding, image[1], self.shape[1], steps[0], steps[2])
        horizontal = axis(padding, image[2], self.shape[2], steps[1], steps[3])
        assert vertical is not None, "the model has been run"
        assert horizontal is not None, "the model has been run"
        return vertical, horizontal


def _seen(along: Axis) -> Floats:
    """Return [kernel, size]: for each tap, the number of window positions at which it sees each pixel (0 or 1)."""
    visible = np.zeros((along.kernel, along.size), np.float32)
    for tap in range(along.kernel):
        pixels = np.arange(along.out) * along.stride - along.before + tap * along.dilation
        visible[tap, pixels[(pixels >= 0) & (pixels < along.size)]] = 1
    return visible


def matrix_product(model: FloatModel, m: Multiplied) -> MatrixProduct | None:
    """Return an operator's weights as matrices; None if it is of another kind."""
    op, options, shape = (
        model.graph.op(m.operator).name,
        model.graph.op(m.operator).options,
        model.constants[m.tensor].shape,
    )
    if op == "FULLY_CONNECTED":
        return MatrixProduct(m, 1, shape, depthwise=False, steps=None)
    if op not in ("CONV_2D", "DEPTHWISE_CONV_2D") or options is None:
        return None
    names = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    steps = tuple(int(options[name]) for name in names)
    channels = model.graph.tensors[m.data].shape[3]
    depthwise = op == "DEPTHWISE_CONV_2D"
    return MatrixProduct(m, channels if depthwise else channels // shape[3], shape, depthwise, steps)
