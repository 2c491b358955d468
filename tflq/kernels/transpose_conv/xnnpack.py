"""TRANSPOSE_CONV of 8-bit codes by XNNPACK: the reference's sums, scaled by a float32 multiplier.

Operands, options and refusals: tflq/kernels/transpose_conv/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode, CalculateTransposeConvPaddings.
"""

from __future__ import annotations

from tflq.kernels.delegation import delegate, has_bias_scales, has_filter_scales, has_shape, is_quantized
from tflq.kernels.families.xnnpack_scaling import gemm, rescaled
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.transpose_conv.reference import prepare_quantized
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic

_SAME = 0  # of the schema's paddings


def takes(node: Node) -> bool:
    """Constant weights and bias; a filter that is no smaller than the steps (SAME) and no larger than the output."""
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    return (
        is_quantized(x)
        and is_quantized(y)
        and has_filter_scales(w, 0)
        and w.is_constant
        and (bias is None or (has_bias_scales(bias) and bias.is_constant and has_shape(bias, 1, 1)))
        and has_shape(x, 4)
        and has_shape(w, 4)
        and filter_fits(node)
    )


def filter_fits(node: Node) -> bool:
    """Whether steps (SAME) or output (VALID) leave room for the filter. Source: CalculateTransposeConvPaddings."""
    w, out_shape = node.input(1), [int(n) for n in node.constant(0).reshape(-1)]
    if len(out_shape) != 4:
        return False
    if int(node.options["padding"]) == _SAME:
        return w.shape[1] >= int(node.options["stride_h"]) and w.shape[2] >= int(node.options["stride_w"])
    return w.shape[1] <= out_shape[1] and w.shape[2] <= out_shape[2]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    w, x = node.input(1), node.input(2)
    return rescaled(node, prepare_quantized(node, arithmetic), gemm(arithmetic, x), x, w, w.shape[0])


KERNELS = valid(
    xnnpack("litert-1.0"),
    *(
        delegate(Kernel("TRANSPOSE_CONV", types, prepare, (1, 5), (0,)), takes)
        for types in ("int32 uint8 uint8 int32? -> uint8", "int32 int8 int8 int32? -> int8")
    ),
)
