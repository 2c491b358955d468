"""DEPTHWISE_CONV_2D of the optimized resolver. Data sheets: kernels/depthwise_conv_2d/reference.py, hybrid.py.

int8: the reference's sums; vector code scales eight channels at a time. uint8 on AArch64: scaled by vector code if the
kernel for 3 x 3 filters applies, else as the reference.
float32: sums begin with the bias. The bias must be there, and the channels must fit into a buffer: the source does not
look. Up to 2.14 the build for x86-64 has no vector code of its own.
Hybrid: the reference's sums; vector code scales by the filter first, four channels at a time; a bias must be there.
Source: LiteRT 2.3 optimized/integer_ops/depthwise_conv.h DepthwiseConvGeneral, Quantize (int8);
depthwiseconv_3x3_filter_common.h Fast3x3FilterKernelSupported; depthwiseconv_uint8_3x3_filter.h;
optimized/depthwiseconv_float.h DepthwiseConvImpl, with the NEON code through SSE, and TensorFlow 2.14's without it;
optimized/integer_ops/depthwise_conv_hybrid.h DoDepthwiseConvHybridGeneral.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.kernels.depthwise_conv_2d import hybrid, reference
from tflq.engine.kernels.depthwise_conv_2d.hybrid import OpData, accumulate
from tflq.engine.kernels.depthwise_conv_2d.reference import FloatData, prepare_float, prepare_quantized
from tflq.engine.kernels.depthwise_conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.contraction import multipliers
from tflq.engine.kernels.families.hybrid import centre_images
from tflq.engine.kernels.families.ordered_sums import convolve_depthwise
from tflq.engine.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import Prepare, eight_channels, in_whole_blocks, requantizing
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import quantize_multiplier
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Channels that the kernel takes at a time: it leaves none over.
_CHANNELS = 8


def check_bias(node: Node) -> None:
    """Refuse an absent bias: the process dies. Source: DepthwiseConvInitAccBuffer of floats and codes."""
    if node.optional(2) is None:
        raise UndefinedResultError(node.op, "an absent bias is read through a null pointer")


def biased(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses an absent bias, unless there is nothing to compute."""

    def prepare_biased(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare(node, arithmetic)
        if 0 not in (prepared.shapes[0] or ()):
            check_bias(node)
        return prepared

    return prepare_biased


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator with the scaling of the kernel that applies."""
    at, shape, times = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    _, shift = quantize_multiplier(float(multipliers(node, arithmetic, x, w, bias, y, 1)[0]))
    if times == 1 and shape[3] % _CHANNELS == 0 and shift <= 0 and is_fast_window(at):
        arithmetic = replace(arithmetic, requantize=arithmetic.requantize_simd)
    return prepare_quantized(node, arithmetic)


def is_fast_window(at: Window) -> bool:
    """Return whether it is 3 x 3, with equal strides of 1 or 2 and at most one pixel of border on every side.

    Padding of one pixel may not be exceeded below or to the right; without padding there is none there either. A line
    of several pixels is too thin.
    """
    if (at.kernel_h, at.kernel_w, at.dilation_h, at.dilation_w) != (3, 3, 1, 1):
        return False
    if at.stride_h != at.stride_w or at.stride_h > 2 or at.pad_top != at.pad_left or at.pad_top > 1:
        return False
    below = (at.out_h - 1) * at.stride_h - at.pad_top + at.kernel_h - at.height
    right = (at.out_w - 1) * at.stride_w - at.pad_left + at.kernel_w - at.width
    if max(below, right) > at.pad_top:
        return False
    return at.pad_top == 0 or min(at.height, at.width) > 1 or at.height == at.width


#: Floats that are summed up at a time, whole pixels of one row of the image, and floats in a vector.
BUFFER, VECTOR = 4832, 4


def held_by(vector: int) -> Prepare:
    """Return a prepare that clamps by vectors of `vector` floats, and one by one for the rest of a buffer."""

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
        check_bias(node)
        if data.shape[3] > BUFFER:
            raise UndefinedResultError("DepthwiseConvImpl", f"{data.shape[3]} channels are more than its buffer holds")
        return Prepared(prepared.shapes, data, evaluate)

    return prepare


def _buffers(data: FloatData) -> Iterator[slice]:
    """Return the parts of an output row that fill one buffer each."""
    width, step = data.shape[2] * data.shape[3], BUFFER // data.shape[3] * data.shape[3]
    return (slice(first, min(first + step, width)) for first in range(0, width, step))


def _rest(part: Array, vector: int) -> Array:
    """Return the elements of a buffer that no whole vector takes."""
    return part[:, in_whole_blocks(part.shape[1], vector) :]


def _with_rests(convolve: Call, rests: Sequence[Array], low: np.float32, high: np.float32) -> None:
    """Convolve; after the vectors, NaN becomes the upper limit, and -0.0 at a limit of 0 becomes 0.0."""
    convolve()
    for rest in rests:
        np.fmin(rest, high, out=rest)
        if low == 0:
            np.add(rest, np.float32(0), out=rest)


#: More than a buffer ever holds.
_NEVER = BUFFER + 1

#: Channels that the vector loop takes at a time.
_HYBRID_CHANNELS = 4


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    check_bias(node)
    prepared = hybrid.prepare(node, arithmetic)
    return Prepared(prepared.shapes, prepared.data, eval_hybrid)


def eval_hybrid(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32; in whole blocks times the filter's scale, times the image's; else the other way round;
    then bias.
    """
    codes, scales = centre_images(x)
    sums = np.zeros(data.shape, np.int32)
    accumulate(codes, np.ascontiguousarray(w[0]), data.window, sums)
    out = sums.astype(np.float32)
    at = in_whole_blocks(data.shape[3], _HYBRID_CHANNELS)
    image = scales[:, None, None, None]
    out[..., :at] *= data.scale[:at]
    out *= image
    out[..., at:] *= data.scale[at:]
    out += bias.reshape(-1)
    np.copyto(out[..., :at], data.clamp.low, where=np.isnan(out[..., :at]))  # maxps takes the limit
    return clamp_in_place(out, *data.clamp)


KERNELS = (
    *valid(
        opt(vectors=True),
        Kernel(
            "DEPTHWISE_CONV_2D",
            "int8 int8|int4 int32? -> int8",
            biased(requantizing(prepare_quantized, eight_channels)),
            (1, 6),
        ),
    ),
    *valid(
        opt(cpu="arm64", vectors=True),
        Kernel("DEPTHWISE_CONV_2D", "uint8 uint8 int32? -> uint8", biased(prepare_uint8), (1, 6)),
    ),
    *valid(
        opt(),
        *(
            replace(row, prepare=biased(row.prepare))
            for row in reference.ROWS
            if row.types in ("uint8 uint8 int32? -> uint8", "int8 int8|int4 int32? -> int8")
        ),
        *unclaimed_floats(beside_dense(reference.ROWS)),
    ),
    *valid(
        opt("litert-1.0"),
        Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", held_by(VECTOR), (1, 6)),
        Kernel("DEPTHWISE_CONV_2D", "float32 int8 float32? -> float32", prepare_hybrid, (1, 6)),
    ),
    *valid(
        opt(until="tflite-2.14"),
        *(replace(row, prepare=held_by(_NEVER)) for row in reference.ROWS if row.signature.is_float),
    ),
)
