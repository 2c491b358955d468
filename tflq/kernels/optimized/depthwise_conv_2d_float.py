"""DEPTHWISE_CONV_2D of float32: sums begin with the bias.

Operands, options and other refusals: tflq/kernels/reference/depthwise_conv_2d.py. The bias must be there, and the
channels must fit into a buffer: the source does not look.
Source: LiteRT 2.3 optimized/depthwiseconv_float.h DepthwiseConvImpl, with the NEON code through SSE.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.ordered_sums import convolve_depthwise
from tflq.kernels.families.vector_blocks import Prepare, in_whole_blocks
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.reference.depthwise_conv_2d import FloatData, prepare_float
from tflq.numerics.arithmetic import Arithmetic

#: Floats that are summed up at a time, whole pixels of one row of the image, and floats in a vector.
BUFFER, VECTOR = 4832, 4


def held_by(vector: int) -> Prepare:
    """A prepare whose limits are held by vectors of so many floats and one by one for the rest of a buffer."""

    def evaluate(data: FloatData, x: Array, w: Array, bias: Array) -> Array:
        """Rounding: product and sum apart, over ky, kx in order, bias first. Padding: left out."""
        out = np.empty(data.shape, np.float32)
        start = bias.reshape(-1)
        convolve_depthwise(
            np.ascontiguousarray(x),
            np.ascontiguousarray(w[0]),
            start,
            np.full_like(start, -0.0),
            data.window,
            np.float32(-np.inf),
            np.float32(np.inf),
            out,
        )
        _hold(out.reshape(-1, data.shape[2] * data.shape[3]), *data.clamp, data.shape[3], vector)
        return out

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare_float(node, arithmetic)
        data: FloatData = prepared.data
        if 0 in data.shape:
            return prepared
        if len(node.inputs) < 3 or node.inputs[2] is None:
            raise UndefinedResultError("DepthwiseConvInitAccBuffer", "an absent bias is read through a null pointer")
        if data.shape[3] > BUFFER:
            raise UndefinedResultError("DepthwiseConvImpl", f"{data.shape[3]} channels are more than its buffer holds")
        return Prepared(prepared.shapes, data, evaluate)

    return prepare


def _hold(rows: Array, low: np.float32, high: np.float32, channels: int, vector: int) -> None:
    """Vectors keep NaN and -0.0; after them NaN becomes the upper limit, and -0.0 at a limit of 0 becomes 0.0."""
    step = BUFFER // channels * channels
    for first in range(0, rows.shape[1], step):
        part = rows[:, first : first + step]
        whole = in_whole_blocks(part.shape[1], vector)
        clamp_in_place(part[:, :whole], low, high)
        rest = part[:, whole:]
        np.copyto(rest, high, where=~(rest < high))
        np.copyto(rest, low, where=rest <= low)


KERNELS = (Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", held_by(VECTOR), (1, 6)),)
