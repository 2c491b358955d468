"""Shared parts of operators that contract with weights: real multipliers, the output, and rows of integers.

Source: LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Range, centred_range
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, Reals, repeat, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Bias scale and product of scales may differ by this much, in LSB of the output per LSB of the bias.
_BIAS_SCALE_SLACK = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Accumulators -> codes: bias, then scale, zero point, clamp and narrow type."""

    bias: Array  # LSB of accumulator, int32 or int64, length C, repeated
    pipeline: OutputPipeline

    def with_bias(self, bias: Array | None, channels: int) -> Output:
        """Return a copy with another bias."""
        return replace(self, bias=repeat(bias_of(bias, channels, self.bias.dtype)))

    def into(self, accumulators: Array, out: Array) -> None:
        """Fill `out` (R, C) with the codes of `accumulators` (R, C)."""
        p = self.pipeline
        p.stage.narrow(accumulators, out, self.bias, int(p.zero_point), *p.clamp)


def output(
    node: Node, stage: OutputStage, y: Operand, bias: Array | None, channels: int, accumulator: DTypeLike
) -> Output:
    """Return the output of an operator with a fused activation; an absent bias is zero."""
    dtype = CARRIER[y.type]
    pipeline = OutputPipeline(stage, y.zero_point, code_range(node, y, dtype), dtype)
    return Output(repeat(bias_of(bias, channels, accumulator)), pipeline)


def bias_of(bias: Array | None, channels: int, accumulator: DTypeLike) -> Array:
    """Return a bias of the accumulator's type, length `channels`: zero if there is none."""
    return np.zeros(channels, accumulator) if bias is None else np.array(bias, accumulator).reshape(-1)


def multipliers(
    node: Node, arithmetic: Arithmetic, x: Operand, w: Operand, bias: Operand | None, y: Operand, channels: int
) -> Reals:
    """Return the real multipliers of convolutions, length `channels`: uint8 has one, signed types one a channel."""
    scales = weight_scales(node, x, w, channels)
    if x.type == TensorType.UINT8:
        return np.full(channels, per_tensor_multiplier(node, arithmetic, x, w, bias, y))
    return float64_multipliers(x, scales, y, channels)


def float64_multipliers(x: Operand, weight_scales: Array, y: Operand, channels: int) -> Reals:
    """Return scale(x) * scale(w[c]) / scale(y), every step in float64; length `channels`."""
    with np.errstate(all="ignore"):
        real: Reals = np.float64(x.scale) * weight_scales.astype(np.float64) / np.float64(y.scale)
    return np.broadcast_to(real, channels).copy()


def per_tensor_multiplier(
    node: Node, arithmetic: Arithmetic, x: Operand, w: Operand, bias: Operand | None, y: Operand
) -> np.float64:
    """Return scale(x) * scale(w), rounded to the type of scales, over scale(y) in float64.

    Refused where the bias was quantized with a scale that does not go with that product.
    """
    with np.errstate(all="ignore"):
        if bias is not None:
            product = np.float64(x.scale) * np.float64(w.scale)
            slack = abs(product - np.float64(bias.scale)) / np.float64(y.scale)
            node.check(
                bool(slack <= _BIAS_SCALE_SLACK),
                "bias scale is not the product of input and weight scales",
                bias,
                expected=float(product),
                got=float(bias.scale),
            )
        rounded = arithmetic.scale_type(x.scale) * arithmetic.scale_type(w.scale)
        node.check(bool(rounded >= 0), "product of input and weight scales is negative", w, got=float(rounded))
        return np.float64(rounded) / np.float64(y.scale)


def weight_scales(node: Node, x: Operand, w: Operand, channels: int) -> Array:
    """Return the weights' scales (float32, length 1 or `channels`), checked as the source does."""
    require_quantized(node, x, w)
    quantization = w.quantization
    assert quantization is not None  # require_quantized saw to it
    scales = quantization.scale
    node.check(len(scales) in (1, channels), "number of weight scales", w, expected=f"1 or {channels}", got=len(scales))
    if len(scales) > 1:
        signed = w.type in (TensorType.INT8, TensorType.INT4)
        node.check(signed, "per-channel scales need signed 8 or 4-bit weights", w, got=w.type.label)
        dimension = quantization.quantized_dimension
        size = w.shape[dimension] if 0 <= dimension < len(w.shape) else None
        node.check(size == channels, "size of the quantized dimension", w, expected=channels, got=size)
    return scales


def require_quantized(node: Node, *operands: Operand) -> None:
    """Refuse operands without quantization parameters."""
    for operand in operands:
        quantization = operand.quantization
        node.check(quantization is not None and len(quantization.scale) > 0, "has no quantization parameters", operand)


def require_symmetric(node: Node, *operands: Operand | None) -> None:
    """Refuse operands with a zero point other than 0, in any channel."""
    for operand in operands:
        if operand is not None and operand.quantization is not None:
            points = operand.quantization.zero_point
            node.check(not np.any(points), "zero point", operand, expected=0, got=points.tolist()[:8])


def require_zero(node: Node, *operands: Operand | None) -> None:
    """Refuse operands of one scale with a zero point other than 0; several zero points are not looked at.

    Source: conv.cc, depthwise_conv.cc, transpose_conv.cc Prepare, params.zero_point.
    """
    for operand in operands:
        if operand is not None:
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)


def require_codes(node: Node, *operands: Operand) -> None:
    """Refuse operands whose zero point is no code of their type: products of codes count on it."""
    for operand in operands:
        low, high = type_range(CARRIER[operand.type])
        inside = low <= operand.zero_point <= high
        node.check(inside, "zero point", operand, expected=f"{low} to {high}", got=int(operand.zero_point))


def filter_zero_point(node: Node, x: Operand, w: Operand) -> ZeroPoint:
    """Return the number subtracted from each code of a filter: with uint8 activations its zero point, otherwise 0.

    Zero points of `x` and, where it counts, of `w` have to be codes.
    """
    if x.type != TensorType.UINT8:
        require_codes(node, x)
        return ZeroPoint(0)
    require_codes(node, x, w)
    return w.zero_point


def read_bias_type(node: Node, bias: Operand | None) -> TensorType:
    """Return the option quantized_bias_type, which the bias has if it is not FLOAT32, which states nothing."""
    said = TensorType(int(node.options.get("quantized_bias_type", 0)))
    if said not in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64):
        node.refuse("quantized_bias_type", expected="int32 or int64", got=said.label)
    if bias is not None and said not in (TensorType.FLOAT32, bias.type):
        node.refuse("bias type", bias, expected=said.label, got=bias.type.label)
    return said


def accumulator_16x8(node: Node, bias: Operand | None) -> np.dtype[Any]:
    """Return the type of the accumulator of 16-bit activations: int64, or int32 where the options ask for it.

    A bias that the source would read with another width than it has is refused.
    """
    width = TensorType.INT32 if read_bias_type(node, bias) == TensorType.INT32 else TensorType.INT64
    if bias is not None and bias.type != width:
        raise UndefinedResultError(
            node.op, f"{bias.type.label} bias, read as {width.label} without quantized_bias_type"
        )
    return CARRIER[width]


def stage_of(arithmetic: Arithmetic, accumulator: np.dtype[Any], real: Reals) -> OutputStage:
    """Return the scaling that goes with an accumulator of that width."""
    return (arithmetic.requantize if accumulator == np.int32 else arithmetic.requantize_wide)(real)


def code_span(operand: Operand) -> Range:
    """Return the smallest and largest centred value that a tensor of that type and zero point can hold."""
    return centred_range(type_range(CARRIER[operand.type]), operand.zero_point)


def weights_read_as_int8(w: Array) -> Array:
    """Return weights as the 16x8 kernels read them: as int8, regardless of type. int16 weights give their first bytes.

    Source: EvalQuantizedPerChannel16x8 takes the data pointer without looking at the filter's type.
    """
    if w.dtype == np.int8:
        return w
    return np.ascontiguousarray(w).reshape(-1).view(np.int8)[: w.size].reshape(w.shape)


def centre(codes: Array, zero_point: int) -> Array:
    """Return code minus zero point: int16 for 8-bit codes, int32 for 16-bit ones.

    int8 codes with zero point 0 are returned as they are, since they are the weights of a model and may be large.
    """
    if codes.dtype == np.int8 and zero_point == 0:
        return codes
    wide: Array = codes.astype(np.int16 if codes.dtype.itemsize == 1 else np.int32)
    wide -= wide.dtype.type(zero_point)
    return wide
