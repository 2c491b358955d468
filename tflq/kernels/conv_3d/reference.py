"""CONV_3D: convolution of volumes.

| operand | shape                | types   |
|---------|----------------------|---------|
| x       | N, D, H, W, C        | float32 |
| w       | KD, KH, KW, C, O     | float32 |
| bias    | O, may be absent     | float32 |
| y       | N, OD, OH, OW, O     | float32 |

Options: padding, strides, dilations, fused activation.
Source: LiteRT 2.3, conv3d.cc; reference/conv3d.h Conv3D.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.geometry.volumes import OpData, check_operands, convolve_3d, data_of, window
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Empty volumes and filters are refused; an empty batch is not."""
    x, w = node.input(0), node.input(1)
    check_operands(node, x, w, 3, 4, node.optional(2))
    for operand, sizes in ((x, x.shape[1:]), (w, w.shape)):
        node.check(min(sizes) > 0, "sizes", operand, expected="above 0", got=list(sizes))
    at = window(node, x.shape[1:4], w.shape[:3])
    shape = (x.shape[0], *at.out, w.shape[4])
    return Prepared((shape,), data_of(node, at, shape), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: Conv3D. Rounding: product and sum apart, one float32 sum over kd, ky, kx, c, then the bias."""
    out = np.empty(data.shape, np.float32)
    biases = np.zeros(w.shape[4], np.float32) if bias is None else bias.reshape(-1)
    convolve_3d(np.ascontiguousarray(x), np.ascontiguousarray(w), biases, data.window, *data.clamp, out)
    return out


KERNELS = (Kernel("CONV_3D", "float32 float32 float32? -> float32", prepare, (1, 1)),)
