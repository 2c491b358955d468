"""DEPTHWISE_CONV_2D of float32: sums begin with the bias.

Operands, options and other refusals: tflq/kernels/reference/depthwise_conv_2d.py. The bias must be there, and the
channels must fit into a buffer: the source does not look.
Source: LiteRT 2.3 optimized/depthwiseconv_float.h DepthwiseConvImpl, with the NEON code through SSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.ordered_sums import convolve_depthwise
from tflq.kernels.families.vector_blocks import Prepare, in_whole_blocks
from tflq.kernels.filling import Call, filling
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.reference.depthwise_conv_2d import FloatData, prepare_float
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import NumberClamp

#: Floats that are summed up at a time, whole pixels of one row of the image, and floats in a vector.
BUFFER, VECTOR = 4832, 4
#: Limits that hold everything.
_OPEN = NumberClamp(-np.float32(np.inf), np.float32(np.inf))


def held_by(vector: int) -> Prepare:
    """A prepare whose limits are held by vectors of so many floats and one by one for the rest of a buffer."""

    def evaluate(data: FloatData, x: Array, w: Array, bias: Array) -> Array:
        """As evaluate_in_vectors, but for what vectors leave of a buffer."""
        out = np.asarray(evaluate_in_vectors(replace(data, clamp=_OPEN), x, w, bias))
        rows = out.reshape(-1, data.shape[2] * data.shape[3])
        for part in _buffers(data):
            _hold(rows[:, part], *data.clamp, vector)
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
        in_vectors = all((part.stop - part.start) % vector == 0 for part in _buffers(data))
        return Prepared(prepared.shapes, data, evaluate_in_vectors if in_vectors else evaluate)

    return prepare


def _buffers(data: FloatData) -> Iterator[slice]:
    """What a buffer takes of a row of the output, one after the other."""
    width, step = data.shape[2] * data.shape[3], BUFFER // data.shape[3] * data.shape[3]
    return (slice(first, min(first + step, width)) for first in range(0, width, step))


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate_in_vectors(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Rounding: product and sum apart, over ky, kx in order, bias first. Padding: left out. NaN and -0.0 stay."""
    start = bias.reshape(-1)
    nothing = np.full_like(start, -0.0)
    image, weights = np.ascontiguousarray(x), np.ascontiguousarray(w[0])
    return convolve_depthwise.bound(image, weights, start, nothing, data.window, *data.clamp, out)


def _hold(part: Array, low: np.float32, high: np.float32, vector: int) -> None:
    """Vectors keep NaN and -0.0; after them NaN becomes the upper limit, and -0.0 at a limit of 0 becomes 0.0."""
    whole = in_whole_blocks(part.shape[1], vector)
    clamp_in_place(part[:, :whole], low, high)
    rest = part[:, whole:]
    np.copyto(rest, high, where=~(rest < high))
    np.copyto(rest, low, where=rest <= low)


KERNELS = (Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", held_by(VECTOR), (1, 6)),)
