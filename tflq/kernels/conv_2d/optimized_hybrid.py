"""CONV_2D, hybrid, with filters of different scales: both scales are multiplied first. Groups are the reference's.

Operands, options and refusals: tflq/kernels/conv_2d/reference_hybrid.py.
Source: LiteRT 2.3 conv.cc EvalHybridPerChannel; optimized_ops.h HybridConvPerChannel.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.conv_2d import reference_hybrid as reference
from tflq.kernels.conv_2d.reference_hybrid import OpData, blocks, image_of, scales_differ
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.hybrid import centred_images
from tflq.kernels.geometry.windows import patches_into
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.contract import accumulators_int32


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Constants are the reference's."""
    prepared = reference.prepare(node, arithmetic)
    w = node.input(1)
    is_ours = scales_differ(w) and node.input(0).shape[3] == w.shape[3]
    return Prepared(prepared.shapes, prepared.data, eval_per_channel) if is_ours else prepared


def eval_per_channel(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32, times the product of the scales, then bias."""
    codes, scales = centred_images(x)
    (contraction,) = data.weights((x, w, bias))
    out = np.empty(data.shape, np.float32)
    flat = out.reshape(-1, data.shape[3])
    for first, patches in blocks(len(flat), contraction.shape[0], contraction.real):
        block = flat[first : first + len(patches)]
        patches_into(codes, 0, data.window, first, 0, patches)
        block[...] = accumulators_int32(contraction(patches))
        block *= scales[image_of(data, first, len(patches)), None] * data.scale
        block += bias.reshape(-1)
    return clamp_in_place(out, *data.clamp)


KERNELS = valid(opt("litert-1.0"), Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare, (1, 8)))
