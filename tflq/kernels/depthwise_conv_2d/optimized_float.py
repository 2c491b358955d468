"""DEPTHWISE_CONV_2D of float32: sums begin with the bias.

Operands, options and other refusals: tflq/kernels/depthwise_conv_2d/reference.py. The bias must be there, and the
channels must fit into a buffer: the source does not look.
Source: LiteRT 2.3 optimized/depthwiseconv_float.h DepthwiseConvImpl, with the NEON code through SSE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.depthwise_conv_2d import reference
from tflq.kernels.depthwise_conv_2d.reference import FloatData, prepare_float
from tflq.kernels.families.ordered_sums import convolve_depthwise
from tflq.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.kernels.families.vector_blocks import Prepare, in_whole_blocks
from tflq.kernels.filling import Call, filling
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

#: Floats that are summed up at a time, whole pixels of one row of the image, and floats in a vector.
BUFFER, VECTOR = 4832, 4


def held_by(vector: int) -> Prepare:
    """A prepare whose limits are held by vectors of so many floats and one by one for the rest of a buffer."""

    @filling(lambda data, *_: (data.shape, np.float32))
    def evaluate(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
        """Rounding: product and sum apart, over ky, kx in order, bias first. Padding: left out."""
        start = bias.reshape(-1)
        nothing = np.full_like(start, -0.0)
        image, weights = np.ascontiguousarray(x), np.ascontiguousarray(w[0])
        convolve = convolve_depthwise.bound(image, weights, start, nothing, data.window, *data.clamp, out)
        rows = out.reshape(-1, data.shape[2] * data.shape[3])
        rests = [rest for part in _buffers(data) if (rest := _rest(rows[:, part], vector)).size]
        return (lambda: _with_rests(convolve, rests, *data.clamp)) if rests else convolve

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


def _buffers(data: FloatData) -> Iterator[slice]:
    """What a buffer takes of a row of the output, one after the other."""
    width, step = data.shape[2] * data.shape[3], BUFFER // data.shape[3] * data.shape[3]
    return (slice(first, min(first + step, width)) for first in range(0, width, step))


def _rest(part: Array, vector: int) -> Array:
    """What vectors leave of a buffer."""
    return part[:, in_whole_blocks(part.shape[1], vector) :]


def _with_rests(convolve: Call, rests: Sequence[Array], low: np.float32, high: np.float32) -> None:
    """Vectors keep NaN and -0.0; after them NaN becomes the upper limit, and -0.0 at a limit of 0 becomes 0.0."""
    convolve()
    for rest in rests:
        np.fmin(rest, high, out=rest)
        if low == 0:
            np.add(rest, np.float32(0), out=rest)


KERNELS = (
    *valid(
        opt("litert-1.0"), Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", held_by(VECTOR), (1, 6))
    ),
    *valid(opt(), *unclaimed_floats(beside_dense(reference.KERNELS))),
)
