"""CONV_2D, hybrid: float images, quantized on the way, against narrow filters.

| operand | shape          | types             | quantization                              |
|---------|----------------|-------------------|-------------------------------------------|
| x       | N, H, W, C     | float32           | none                                      |
| w       | O, KH, KW, C/G | int8, uint8, int4 | per tensor; int8, int4: or along O        |
| bias    | O              | float32           |                                           |
| y       | N, OH, OW, O   | float32           | none                                      |

Options: padding, strides, dilations, fused activation. Every image has one scale; filters whose scales differ take the
image quantized asymmetrically, all others symmetrically. Groups need scales that differ: without them the source reads
tensors that it never made. Weights are read as int8; their zero points are not looked at.
Source: LiteRT 2.3, conv.cc Prepare, EvalHybrid, EvalHybridPerChannel; reference/conv.h HybridConvPerChannel;
optimized_ops.h HybridConv; sse_tensor_utils.cc MatrixBatchVectorMultiplyAccumulate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.hybrid import centre_images, channel_scales, quantize_images, read_as_int8
from tflq.engine.kernels.families.hybrid_sums import HybridSums
from tflq.engine.kernels.families.operand_rows import Patches
from tflq.engine.kernels.families.ordered_sums import finish_pixels
from tflq.engine.kernels.families.recurrent.binding import Inputs, bind
from tflq.engine.kernels.geometry.patches import patches_into
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range import ByteMatrix
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Bytes of patches that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of both forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    clamp: NumberClamp
    scale: Array  # of the filters: one or O, float32
    weights: Callable[[Inputs], Any]  # where scales differ: HybridSums; else a ByteMatrix


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose the form by the scales."""
    at, shape, group_count = shapes(node)
    w = node.input(1)
    differ = scales_differ(w)
    if group_count > 1 and not differ:
        raise UndefinedResultError(node.op, "groups whose filters all have one scale")
    scale = channel_scales(node, w, shape[3]) if differ else np.array([first_scale(w)], np.float32)

    def groups(inputs: Inputs) -> HybridSums:
        matrices = np.split(filters(inputs).T, group_count, axis=1)
        return HybridSums.of(Patches(ZeroPoint(0), at, w.shape[3]), matrices, math.prod(shape[:3]))

    def matrix(inputs: Inputs) -> ByteMatrix:
        return ByteMatrix.of(filters(inputs), scale[0], keeps_signs=shape[3] % 4 == 0)

    data = OpData(
        window=at,
        shape=shape,
        clamp=float_range(node),
        scale=scale,
        weights=bind(node, (1,), groups) if differ else bind(node, (1,), matrix),
    )
    return Prepared((shape,), data, eval_per_channel if differ else eval_per_tensor)


def scales_differ(w: Operand) -> bool:
    """Return whether the source goes channel by channel: not for uint8, nor if all scales are equal."""
    q = w.quantization
    return q is not None and w.type != TensorType.UINT8 and bool((q.scale != q.scale[:1]).any())


def first_scale(w: Operand) -> np.float32:
    """Return the scale of all filters, the first of several."""
    q = w.quantization
    return q.scale[0] if q is not None and len(q.scale) > 1 else w.scale


def filters(inputs: Inputs) -> Array:
    """Return the filters as rows, int8."""
    w = inputs[1]
    assert w is not None
    return read_as_int8(w).reshape(w.shape[0], -1)


def eval_per_channel(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Source: HybridConvPerChannel. Rounding: sum to float32, times scale of the filter, times scale of the image."""
    codes, scales = centre_images(x)
    sums = pixel_sums(data, codes, (x, w, bias))
    out = np.empty(data.shape, np.float32)
    pixels, added = out.reshape(-1, data.shape[3]), np.ascontiguousarray(bias).reshape(-1)
    pixels[...] = sums
    pixels *= data.scale
    pixels *= scales[image_of(data, 0, len(pixels)), None]
    finish_pixels(pixels, added, *data.clamp)
    return out


def pixel_sums(data: OpData, codes: Array, inputs: Inputs) -> Array:
    """Return the sums (pixels, filters) of centred codes of images times the filters, int32."""
    products: HybridSums = data.weights(inputs)
    sums = np.empty((math.prod(data.shape[:3]), data.shape[3]), np.int32)
    products.into(codes, 0, sums)
    return sums


def eval_per_tensor(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Source: HybridConv. Rounding: sum to float32, times the product of the scales.

    Where O is no multiple of four the sums come from the helper that loses signs of -128.
    """
    rows = quantize_images(x, asymmetric=False)
    codes, scales = rows.codes.reshape(x.shape), rows.scale * data.scale
    matrix: ByteMatrix = data.weights((x, w, bias))
    out = np.empty(data.shape, np.float32)
    flat, added = out.reshape(-1, data.shape[3]), np.ascontiguousarray(bias).reshape(-1)
    for first, patches in blocks(len(flat), matrix.shape[1], np.dtype(np.int8)):
        patches_into(codes, 0, data.window, first, 0, patches)
        block = flat[first : first + len(patches)]
        block[...] = matrix.sums(patches)
        block *= scales[image_of(data, first, len(patches)), None]
        block += np.float32(0)  # products are added to zeros: no -0 is left
        finish_pixels(block, added, *data.clamp)
    return out


def blocks(rows: int, length: int, dtype: np.dtype[Any]) -> Iterator[tuple[int, Array]]:
    """Yield (first row, room for its patches), block by block."""
    size = max(1, min(rows, _CACHE_BYTES // (length * dtype.itemsize)))
    room = np.empty((size, length), dtype)
    for first in range(0, rows, size):
        yield first, room[: min(size, rows - first)]


def image_of(data: OpData, first: int, count: int) -> Array:
    """Return the image that each of `count` output pixels from `first` on belongs to."""
    return np.arange(first, first + count) // (data.window.out_h * data.window.out_w)


ROWS = (Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare, (1, 8)),)
