"""TRANSPOSE_CONV of floats and int8 filters by XNNPACK: images quantized asymmetrically.

Operands, options and refusals: tflq/kernels/transpose_conv/reference_hybrid.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode; XNNPACK's deconvolution2d_nhwc_qd8_f32_qc8w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.delegation import UNCLAIMED, delegate, has_filter_scales, has_shape
from tflq.kernels.families.activation import clamp_in_place, float_range
from tflq.kernels.families.contraction import bias_of
from tflq.kernels.geometry.windows import Window
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape, promising, valid
from tflq.kernels.transpose_conv.reference import scatter, shapes
from tflq.kernels.transpose_conv.xnnpack import filter_fits
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import NumberClamp
from tflq.numerics.contract import Contraction, accumulators_int32
from tflq.numerics.dynamic_range_float32 import Rescale, quantize_rows_float32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    spread: Contraction  # (C, KH * KW * O)
    scale: Array  # of the filters, one each, float32
    rescale: Rescale
    clamp: NumberClamp


def takes(node: Node) -> bool:
    """Constant filters per tensor or along the output channels, a constant bias."""
    w, x, bias = node.input(1), node.input(2), node.optional(3)
    return (
        has_filter_scales(w, 0)
        and w.is_constant
        and (bias is None or (bias.is_constant and has_shape(bias, 1, 1)))
        and has_shape(x, 4)
        and has_shape(w, 4)
        and filter_fits(node)
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Zero points of the weights are not looked at."""
    at, shape = shapes(node)
    w = node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.value is not None
    matrix = w.value.transpose(3, 1, 2, 0).reshape(w.shape[3], -1).astype(np.int16)
    data = OpData(
        window=at,
        shape=shape,
        spread=Contraction.of(matrix, (-255, 255)),
        scale=np.broadcast_to(w.quantization.scale, shape[3]),
        rescale=arithmetic.xnnpack_rescale,
        clamp=float_range(node),
    )
    return Prepared((shape,), data, evaluate)


def evaluate(data: OpData, out_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Rounding: the sum to float32, then as `rescale`. Padding: what falls outside is dropped."""
    rows = quantize_rows_float32(np.ascontiguousarray(x).reshape(x.shape[0], -1))
    real, depth = data.spread.real, x.shape[3]
    out = np.empty(data.shape, np.float32)
    added = bias_of(bias, data.shape[3], np.float32)
    for n, codes in enumerate(rows.codes):
        centred = codes.reshape(-1, depth).astype(real) - real.type(rows.zero_point[n])
        sums = np.zeros(data.shape[1:], np.int64)
        scatter(data.spread(centred), 0, data.window, sums)
        out[n] = data.rescale(accumulators_int32(sums).astype(np.float32), rows.scale[n], data.scale, added)
    return clamp_in_place(out, *data.clamp)


_ROWS = (delegate(Kernel("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", prepare, (1, 5), (0,)), takes),)
KERNELS = (
    *valid(xnnpack("litert-2.3", cpu="x86-64"), *_ROWS),
    *valid(xnnpack("litert-2.3", cpu="arm64 wasm"), *promising(UNCLAIMED, _ROWS)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _ROWS)),
)
