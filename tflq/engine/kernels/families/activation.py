"""Fused activations as clamps, and what earlier releases knew of scales.

Fused activation functions as clamps: the one place that turns the schema's enum into limits.

Source: LiteRT 2.3 kernel_util.cc CalculateActivationRangeQuantized and CalculateActivationRange.

16-bit activations in TensorFlow Lite Micro: the bias's own type decides how wide the accumulator is.

Source: tflite-micro (October 2026), conv.cc ConvEval, fully_connected.cc FullyConnectedEval (requires_int32_accum).

Operands as kernels see them that know one scale for each tensor: several read as scale 0, zero point 0.

Source: LiteRT 2.3 core/subgraph.cc GetLegacyQuantization; TensorFlow 1.15 to 2.14, the same.

Operators whose 4-bit weights releases up to 2.14 read as bytes without unpacking them, beyond the end of the data.

Source: TensorFlow 2.14 lite/kernels/conv.cc, fully_connected.cc: only int8 activations unpack their weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.kernels.kernel import Node, Operand, Prepare, Prepared, undefined
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, NumberClamp
from tflq.engine.numerics.rounding import rounding_half_away
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import Quantization
from tflq.typing import Array

#: ActivationFunctionType of the schema -> real limits (None: open)
LIMITS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),  # NONE
    1: (0.0, None),  # RELU
    2: (-1.0, 1.0),  # RELU_N1_TO_1
    3: (0.0, 6.0),  # RELU6
}
#: Beyond every code of a limit.
_INT32 = 2.0**31


def limits(node: Node) -> tuple[float | None, float | None]:
    """Return real limits of the node's fused activation; what is no clamp (TANH, SIGN_BIT) counts as none."""
    return LIMITS.get(int(node.options.get("fused_activation_function", 0)), LIMITS[0])


def quantized_limit(real: float, scale: np.float32, zero_point: int) -> int:
    """Return the code of a real limit: zero_point + round(real / scale), division in float32, ties away from zero.

    Raises:
        UndefinedResultError: The quotient leaves int32: LiteRT refuses that for fused activations (kernel_util.cc
            Quantize), and converts it undefined for RELU operators.
    """
    quotient = float(np.float32(real) / scale)
    if not abs(quotient) < _INT32:
        raise UndefinedResultError("Quantize", f"the limit {real:g} over the scale {scale:g} leaves int32")
    code: int = zero_point + rounding_half_away(quotient)
    return code


def code_range(node: Node, output: Operand, dtype: DTypeLike) -> Clamp:
    """Clamp in LSB of the output: the activation's limits inside the type's range."""
    low, high = type_range(dtype)
    floor, ceiling = limits(node)
    if (floor is not None or ceiling is not None) and not output.scale > 0:
        node.refuse("a fused activation needs a positive per-tensor scale", output, got=output.scale)
    if floor is not None:
        low = max(low, quantized_limit(floor, output.scale, output.zero_point))
    if ceiling is not None:
        high = min(high, quantized_limit(ceiling, output.scale, output.zero_point))
    return Clamp(low, high)


def float_range(node: Node) -> NumberClamp:
    """Clamp of a float32 output; open ends are the largest finite magnitudes, as in the source."""
    floor, ceiling = limits(node)
    largest = np.finfo(np.float32).max
    low, high = -largest if floor is None else floor, largest if ceiling is None else ceiling
    return NumberClamp(np.float32(low), np.float32(high))


def number_range(node: Node, dtype: np.dtype[Any]) -> NumberClamp:
    """Clamp of an unquantized output in its own type; open ends are the type's finite extremes.

    Source: CalculateActivationRange. A limit of -1 wraps where the type is unsigned.
    """
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    floor, ceiling = limits(node)
    low = dtype.type(info.min) if floor is None else np.float64(floor).astype(np.int64).astype(dtype)
    return NumberClamp(low, dtype.type(info.max if ceiling is None else ceiling))


def clamp_in_place(values: Array, low: Any, high: Any) -> Array:
    """Hold `values` inside [low, high] and give them back. NaN stays, and so does -0.0 at a limit of 0.

    Source: ActivationFunctionWithMinMax, min(max(x, low), high) by comparison.
    """
    if values.dtype.kind in "iu":
        return np.clip(values, low, high, out=values)
    np.copyto(values, low, where=values < low)
    np.copyto(values, high, where=values > high)
    return values


def any_activation(prepare: Prepare) -> Prepare:
    """Return `prepare` with activations that are no clamp taken for none."""
    is_open = without_activation(prepare)

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        known = int(node.options.get("fused_activation_function", 0)) in LIMITS
        return (prepare if known else is_open)(node, arithmetic)

    return prepared


def without_activation(prepare: Prepare) -> Prepare:
    """Return `prepare` as if the operator had no fused activation."""

    def prepare_open(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(without_function(node), arithmetic)

    return prepare_open


def without_function(node: Node) -> Node:
    """Return the node without a fused activation."""
    return node.with_options(fused_activation_function=0)


def as_wide_as_its_bias(prepare: Prepare) -> Prepare:
    """Return `prepare` with the bias's own type as the option quantized_bias_type."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node.with_options(quantized_bias_type=int(node.input(2).type)), arithmetic)

    return prepared


_NONE = Quantization(np.zeros(1, np.float32), np.zeros(1, np.int64))


def as_read(operand: Operand) -> Operand:
    """Return the operand, with scale and zero point 0 if it has several."""
    quantization = operand.quantization
    several = quantization is not None and len(quantization.scale) > 1
    return replace(operand, quantization=_NONE) if several else operand


def first_scale(operand: Operand) -> Operand:
    """Return the operand with the first of its scales and zero points."""
    q = operand.quantization
    if q is None or len(q.scale) <= 1:
        return operand
    return replace(operand, quantization=replace(q, scale=q.scale[:1], zero_point=q.zero_point[:1]))


def by_first_scales(prepare: Prepare) -> Prepare:
    """Return a prepare that reads the first of several scales. Source: elementwise.cc GenericPrepare."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node.with_inputs(first_scale).with_outputs(first_scale), arithmetic)

    return prepared


def one_scale(prepare: Prepare) -> Prepare:
    """Return a prepare that reads several scales of an operand as 0."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node.with_inputs(as_read), arithmetic)

    return prepared


def only_one_scale(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses weights with several scales."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        w = node.input(1)
        count = 0 if w.quantization is None else len(w.quantization.scale)
        if count > 1:
            node.reject("this release takes no scales by channel here", w, expected="one scale", got=count)
        return prepare(node, arithmetic)

    return prepared


#: The result depends on memory beyond the weights.
UNDEFINED_PACKED = undefined("4-bit weights are read packed, as bytes")
