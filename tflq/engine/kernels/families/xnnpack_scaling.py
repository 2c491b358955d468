"""Results of 8-bit operators, scaled and clamped as XNNPACK does.

Sums of products are the reference kernels': they are exact integers. Their multiplier is float32: scale(x) * scale(w),
then / scale(y), each rounded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.kernel import Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.float32_stages import FloatRoundingEven
from tflq.engine.numerics.stages import Reals, StageOf, type_range
from tflq.model.ir import TensorType

#: Taps of the largest kernel of a convolution channel by channel.
_MOST_TAPS = 25


def rescaled(node: Node, prepared: Prepared, stage: StageOf, x: Operand, w: Operand, channels: int) -> Prepared:
    """Return a prepared contraction (its data have an `output`) with XNNPACK's scaling and limits."""
    y = node.outputs[0]
    assert w.quantization is not None  # the rules of delegation saw to it
    real = np.broadcast_to(x.scale * w.quantization.scale / y.scale, channels)
    check_multiplier(node, real)
    output = prepared.data.output
    pipeline = replace(output.pipeline, stage=stage(real), clamp=even_range(node, y))
    return replace(prepared, data=replace(prepared.data, output=replace(output, pipeline=pipeline)))


def check_multiplier(node: Node, real: Reals) -> None:
    """Refuse multipliers from 256 on, for which XNNPACK creates no operator.

    Source: XNNPACK convolution-nhwc.c init_requantization_scale_qs8; deconvolution-nhwc.c; fully-connected-nc.c.
    """
    node.check(bool((real < 256).all()), "XNNPACK takes multipliers below 256", got=float(real.max()))


def even_range(node: Node, y: Operand) -> Clamp:
    """Clamp in LSB of the output: the activation's limits / scale + zero point, rounded half to even.

    Source: xnn_qs8_quantize, xnn_qu8_quantize.
    """
    low, high = type_range(np.dtype(y.type.label))
    floor, ceiling = limits(node)
    if floor is not None:
        low = max(low, _even_code(floor, y))
    if ceiling is not None:
        high = min(high, _even_code(ceiling, y))
    return Clamp(low, high)


def _even_code(real: float, y: Operand) -> int:
    return int(np.rint(np.float32(real) / y.scale + np.float32(y.zero_point)))


def gemm(arithmetic: Arithmetic, x: Operand, w: Operand) -> StageOf:
    """Return the scaling of matrix products, which depends on the machine for each type."""
    if x.type == TensorType.UINT8:
        return arithmetic.xnnpack_uint8_gemm
    return arithmetic.xnnpack_int8_gemm if w.type == TensorType.INT8 else arithmetic.xnnpack_int4_gemm


def convolution(arithmetic: Arithmetic, x: Operand, w: Operand, *, is_by_channel: bool, taps: int) -> StageOf:
    """Return the scaling of a convolution whose groups may have one channel in and one out each.

    Of these, kernels of up to 25 taps have a loop of their own; all others are matrix products. Source: XNNPACK
    convolution-nhwc.c find_dwconv_ukernel; dwconv-config.c.
    """
    if not is_by_channel or taps > _MOST_TAPS:
        return gemm(arithmetic, x, w)
    return arithmetic.xnnpack_product if x.type == TensorType.UINT8 else FloatRoundingEven.of


def with_fitting_bias(node: Node, x: int = 0, w: int = 1, bias: int = 2) -> Node:
    """Return the node with the bias's scale that goes with one scale of the weights: XNNPACK compares none."""
    operand, scale = node.optional(bias), np.float32(node.input(x).scale) * np.float32(node.input(w).scale)
    if operand is None or operand.quantization is None or not len(operand.quantization.scale) or not scale:
        return node
    fitting = replace(operand.quantization, scale=np.array([scale], np.float32), zero_point=np.zeros(1, np.int64))
    inputs = tuple(replace(operand, quantization=fitting) if one is operand else one for one in node.inputs)
    return replace(node, inputs=inputs)
