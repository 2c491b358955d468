"""DEPTHWISE_CONV_2D, hybrid: the reference's sums; vector code scales by the filter first, four channels at a time.

Operands, options and refusals: tflq/kernels/depthwise_conv_2d/reference_hybrid.py; a bias must be there.
Source: LiteRT 2.3 optimized/integer_ops/depthwise_conv_hybrid.h DoDepthwiseConvHybridGeneral.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.depthwise_conv_2d import reference_hybrid as reference
from tflq.kernels.depthwise_conv_2d.reference_hybrid import OpData, accumulate
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.hybrid import centred_images
from tflq.kernels.families.vector_blocks import in_whole_blocks
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

#: Channels that the vector loop takes at a time.
BLOCK = 4


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Constants are the reference's."""
    if node.optional(2) is None:
        raise UndefinedResultError("DepthwiseConvHybridPerChannel", "a bias is read that is not there")
    prepared = reference.prepare(node, arithmetic)
    return Prepared(prepared.shapes, prepared.data, evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32; in whole blocks times the filter's scale, times the image's; else the other way round;
    then bias.
    """
    codes, scales = centred_images(x)
    sums = np.zeros(data.shape, np.int32)
    accumulate(codes, np.ascontiguousarray(w[0]), data.window, sums)
    out = sums.astype(np.float32)
    at = in_whole_blocks(data.shape[3], BLOCK)
    image = scales[:, None, None, None]
    out[..., :at] *= data.scale[:at]
    out *= image
    out[..., at:] *= data.scale[at:]
    out += bias.reshape(-1)
    np.copyto(out[..., :at], data.clamp.low, where=np.isnan(out[..., :at]))  # maxps takes the limit
    return clamp_in_place(out, *data.clamp)


KERNELS = valid(opt("litert-1.0"), Kernel("DEPTHWISE_CONV_2D", "float32 int8 float32? -> float32", prepare, (1, 6)))
