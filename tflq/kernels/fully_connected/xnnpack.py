"""FULLY_CONNECTED of 8-bit codes by XNNPACK: the reference's sums, scaled by a float32 multiplier.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitFullyConnectedNode, CheckTensorFilterType.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.delegation import delegate, has_bias_scales, has_shape, is_quantized
from tflq.kernels.families.xnnpack_scaling import gemm, rescaled
from tflq.kernels.fully_connected.reference import prepare_quantized
from tflq.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range

#: Weights of 4 and 2 bits fill whole bytes.
VALUES_A_BYTE = {TensorType.INT4: 2, TensorType.INT2: 4}


def takes(node: Node) -> bool:
    """Constant weights and bias; signed weights with zero point 0."""
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    return (
        is_quantized(x)
        and is_quantized(y)
        and has_weight_scales(w)
        and w.is_constant
        and has_shape(w, 2, 2)
        and (bias is None or (has_bias_scales(bias) and bias.is_constant))
        and (w.type == TensorType.UINT8 or w.zero_point == 0)
        and w.shape[1] % VALUES_A_BYTE.get(w.type, 1) == 0
    )


def has_weight_scales(w: Operand) -> bool:
    """Whether weights have one scale, or several along the units. Source: CheckTensorFilterType."""
    q = w.quantization
    if q is None or len(q.scale) == 0:
        return False
    if w.type == TensorType.UINT8:
        return is_quantized(w)
    if w.type == TensorType.INT2:
        return len(q.scale) == w.shape[0] and q.quantized_dimension == 0
    return len(q.scale) == 1 or q.quantized_dimension == 0


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    x, w = node.input(0), node.input(1)
    if w.type == TensorType.INT4:
        check_sums(node)
    return rescaled(node, prepare_quantized(node, arithmetic), gemm(arithmetic, x), x, w, w.shape[0])


def check_sums(node: Node) -> None:
    """Refuse sums of 4-bit weights that can leave 28 bits, where XNNPACK wraps them.

    Source: XNNPACK's pack_qs8_qc4w_gemm_goi_w and qs8-qc4w-gemm, which keep sixteen times the sum in 32 bits.
    """
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    largest = max(abs(code - int(x.zero_point)) for code in type_range(x.type.label))
    sums = np.abs(node.constant(1)).sum(axis=1, dtype=np.int64) * largest
    if bias is not None:
        sums = sums + np.abs(node.constant(2).astype(np.int64)).reshape(-1)
    if sums.size and sums.max() >= WRAPS:
        node.refuse(f"sums of 4-bit weights can reach {sums.max():,}, which XNNPACK wraps in 28 bits", w)


#: What 28 bits do not hold.
WRAPS = 2**27

KERNELS = valid(
    xnnpack(),
    *(
        delegate(Kernel("FULLY_CONNECTED", types, prepare, (1, 14)), takes)
        for types in ("uint8 uint8 int32? -> uint8", "int8 int8|int4|int2 int32? -> int8")
    ),
)
