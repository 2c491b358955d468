"""CONV_2D by XNNPACK. Operands, options and refusals: tflq/engine/kernels/conv_2d.py, hybrid.py.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Floats and int8 filters: images, or pixels, quantized
asymmetrically.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitConv2DNode; XNNPACK's xnn_define_convolution_2d, qd8-f32-qc8w igemm.

CONV_2D of float32 by XNNPACK. Operands and options: tflq/engine/kernels/conv_2d.py.

Chains of fused multiply-adds: tflq/engine/kernels/families/ordered.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitConv2DNode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.kernels import conv_2d
from tflq.engine.kernels.conv_2d import prepare_quantized, shapes
from tflq.engine.kernels.delegation import (
    BIAS_OF_CODES,
    BIAS_OF_FLOATS,
    RECORDED_IMAGE,
    UNCLAIMED,
    delegate,
    is_in_file,
    is_quantized,
    is_static,
    meeting,
    needs,
    of_no_narrower_bias,
    of_one_width,
    ranked,
    result,
    scaled_along,
)
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import Patches
from tflq.engine.kernels.families.hybrid import HybridSums, multiply_dynamically
from tflq.engine.kernels.families.ordered import OpData, convolve_fused, open_range
from tflq.engine.kernels.families.xnnpack import convolution, rescaled, unread, with_fitting_bias
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, of_types, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range import Rescale
from tflq.model.ir import TensorType
from tflq.typing import Array


@meeting(
    needs(0, is_quantized, ranked(4)),
    needs(1, scaled_along(0), is_in_file, ranked(4)),
    needs(2, *BIAS_OF_CODES),
    result(is_quantized),
    RECORDED_IMAGE,
)
def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, and weights per tensor or along the output channels."""
    return True


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    x, w = node.input(0), node.input(1)
    is_by_channel = w.shape[3] == 1 and w.shape[0] == x.shape[3]
    stage = convolution(arithmetic, x, w, is_by_channel=is_by_channel, taps=w.shape[1] * w.shape[2])
    return rescaled(node, prepare_quantized(with_fitting_bias(node), arithmetic), stage, x, w, w.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    window: Window  # pixels
    shape: Shape  # of the output
    sums: HybridSums  # of products with the filters
    scale: Array  # of the filters, one each, float32
    rescale: Rescale
    clamp: NumberClamp
    quantized: int  # pixels that share a scale: 1, or all of an image


@meeting(
    needs(0, ranked(4)),
    needs(1, lambda w: w.type == TensorType.INT8, scaled_along(0), is_in_file, ranked(4)),
    needs(2, *BIAS_OF_FLOATS),
    RECORDED_IMAGE,
)
def takes_hybrid(node: Node) -> bool:
    """Return whether filters are constant int8, per tensor or along the output channels, and the bias constant."""
    return True


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one matrix a group."""
    at, shape, count = shapes(node)
    w = node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.value is not None
    matrices = np.split(w.value.reshape(w.shape[0], -1).astype(np.int16).T, count, axis=1)
    data = HybridData(
        window=at,
        shape=shape,
        sums=HybridSums.of(Patches(ZeroPoint(0), at, w.shape[3]), matrices, prod(shape[:3])),
        scale=np.array(np.broadcast_to(w.quantization.scale, w.shape[0]), np.float32),
        rescale=arithmetic.xnnpack_rescale,
        clamp=float_range(node),
        quantized=1 if is_fully_connected(node, at, count) else at.height * at.width,
    )
    return Prepared((shape,), data, eval_hybrid)


def is_fully_connected(node: Node, at: Window, groups: int) -> bool:
    """Return whether XNNPACK makes a fully connected operator of it, which quantizes each pixel by itself."""
    filters, kernel_h, kernel_w, depth = node.input(1).shape
    strides = at.stride_h, at.stride_w
    return groups == 1 and (kernel_h, kernel_w) == strides == (1, 1) and depth + filters > 2


@filling(lambda data, *_: (data.shape, np.float32))
def eval_hybrid(data: HybridData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Rounding: the sum to float32, then as `rescale`. Padding: taps outside are left out."""
    shared = 1 if data.quantized == 1 else data.window.out_h * data.window.out_w
    return multiply_dynamically(
        np.ascontiguousarray(x),
        data.quantized * x.shape[3],
        data.sums,
        data.rescale,
        data.scale,
        bias.reshape(-1),
        data.clamp,
        shared,
        out.reshape(-1, data.shape[3]),
    )


_HYBRID = (
    delegate(Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare_hybrid, (1, 8)), takes_hybrid),
)

_CODES = tuple(
    delegate(Kernel("CONV_2D", types, prepare, (1, 8)), takes)
    for types in ("uint8 uint8 int32 -> uint8", "int8 int8 int32 -> int8")
)

_XNNPACK = (
    *valid(xnnpack(), *_CODES),
    *valid(xnnpack(until="litert-2.1"), *map(unread, _CODES)),
    *valid(xnnpack("litert-2.1", cpu="x86-64 arm64-a53"), *_HYBRID),
    *valid(xnnpack("litert-2.1", cpu="wasm"), *promising(UNCLAIMED, _HYBRID)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _HYBRID)),
)


@meeting(needs(0, ranked(4)), needs(1, is_static, ranked(4)), needs(2, *BIAS_OF_FLOATS), RECORDED_IMAGE)
def takes_xnnpack_floats(node: Node) -> bool:
    """Return whether filter and bias are constant."""
    return True


def prepare_xnnpack_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the panels of a constant filter."""
    at, shape, groups = shapes(node)
    data, w = OpData(at, shape, groups, open_range(node)), node.input(1).value
    return Prepared((shape,), data if w is None else data.bound(w), convolve_fused)


_ROW = delegate(
    Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare_xnnpack_floats, (1, 8)), takes_xnnpack_floats
)
_REFERENCE = of_types(conv_2d.ROWS, _ROW.types)
_ALIKE = of_one_width(takes_xnnpack_floats)

_XNNPACK_FLOATS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), replace(_ROW, takes=of_no_narrower_bias(takes_xnnpack_floats))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), unread(_ROW, _ALIKE)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (unread(_REFERENCE, _ALIKE),))),
    *valid(xnnpack(until="litert-1.0"), *promising(UNCLAIMED, (unread(_REFERENCE, takes_xnnpack_floats),))),
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
