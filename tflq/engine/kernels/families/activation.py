"""Fused activation functions as clamps: the one place that turns the schema's enum into limits.

Source: LiteRT 2.3 kernel_util.cc CalculateActivationRangeQuantized and CalculateActivationRange.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.kernels.kernel import Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, NumberClamp
from tflq.engine.numerics.rounding import half_away
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
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
    code: int = zero_point + half_away(quotient)
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


def any_activation(prepare: Callable[[Node, Arithmetic], Prepared]) -> Callable[[Node, Arithmetic], Prepared]:
    """Return `prepare` with activations that are no clamp taken for none."""
    is_open = without_activation(prepare)

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        known = int(node.options.get("fused_activation_function", 0)) in LIMITS
        return (prepare if known else is_open)(node, arithmetic)

    return prepared


def without_activation(prepare: Callable[[Node, Arithmetic], Prepared]) -> Callable[[Node, Arithmetic], Prepared]:
    """Return `prepare` as if the operator had no fused activation."""

    def prepare_open(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(without_function(node), arithmetic)

    return prepare_open


def without_function(node: Node) -> Node:
    """Return the node without a fused activation."""
    fields = {**node.options.fields, "fused_activation_function": 0}
    return replace(node, options=replace(node.options, fields=fields))
