"""CONV_3D_TRANSPOSE: the gradient of a convolution of volumes.

| operand      | shape            | types   |
|--------------|------------------|---------|
| output_shape | 5                | int32   |
| w            | KD, KH, KW, O, C | float32 |
| x            | N, D, H, W, C    | float32 |
| bias         | O, may be absent | float32 |
| y            | output_shape     | float32 |

Options: padding, strides, dilations, fused activation. The convolution of y must give volumes of x's size.
Source: LiteRT 2.3, conv3d_transpose.cc; reference/conv3d_transpose.h Conv3DTranspose.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.geometry.volumes import OpData, check_operands, convolve_3d_transposed, data_of, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.operands import integers, require_rank, require_size
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an output shape that the convolution would not make x of."""
    target, w, x = node.input(0), node.input(1), node.input(2)
    require_rank(node, target, 1)
    check_operands(node, x, w, 4, 3, node.optional(3))
    shape = integers(node, 0)
    node.check(len(shape) == 5, "number of elements", target, expected=5, got=len(shape))
    require_size(node, target, shape)
    ends = (x.shape[0], w.shape[3])
    node.check((shape[0], shape[4]) == ends, "batch and channels of the shape", target, expected=ends, got=shape)
    at = window(node, shape[1:4], w.shape[:3])
    node.check(at.out == x.shape[1:4], "shape does not fit", target, expected=list(x.shape[1:4]), got=list(at.out))
    return Prepared((shape,), data_of(node, at, shape), evaluate)


def evaluate(data: OpData, _: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: Conv3DTranspose. Rounding: product and sum apart, float32 sums in x's order, then the bias."""
    out = np.empty(data.shape, np.float32)
    biases = np.zeros(w.shape[3], np.float32) if bias is None else bias.reshape(-1)
    filters = np.ascontiguousarray(w.swapaxes(3, 4))
    convolve_3d_transposed(np.ascontiguousarray(x), filters, biases, data.window, *data.clamp, out)
    return out


_REFERENCE = (
    Kernel("CONV_3D_TRANSPOSE", "int32 float32 float32 float32? -> float32", prepare, (1, 1), shape_operands=(0,)),
)
KERNELS = (*_REFERENCE, *valid(opt(), *unclaimed_floats(_REFERENCE)))
