"""MEAN and SUM of codes that are rescaled in float32: the rule of each release and library as data.

Every rule rescales a sum, or its quotient by the number of summands: code = narrow(round(r * scale + bias) + zero
point). Each step is rounded to float32, and `round` is half away from zero.
Source: TensorFlow r1.15 to 2.14 reference_ops.h, reference/reduce.h QuantizedMeanOrSum; LiteRT 2.3 optimized/reduce.h
QuantizedMeanOrSum; XNNPACK's reduce, qs8 and qu8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tflq.engine.kernels.families.reduction import Reduced, reduced_axes, sum_int32
from tflq.engine.kernels.kernel import Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array


class Narrow(Enum):
    """How a number becomes a code."""

    CLIP_FLOAT = "add the zero point in float32, then clip"
    CLIP = "convert to int32, add the zero point, then clip"
    WRAP = "convert to int32, add the zero point, then drop the upper bits"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Rule:
    """How one release rescales its sums."""

    divide: bool  # the mean is rescaled, not the sum
    narrow: Narrow
    half_step: bool = False  # the bias contains half a step, although rounding is to the nearest

    def prepare(self, node: Node, arithmetic: Arithmetic) -> Prepared:
        """Prepare a reduction over the axes operand."""
        data = self.of(node, reduced_axes(node))
        return Prepared((data.reduced.shape,), data, eval_rescaled)

    def of(self, node: Node, reduced: Reduced) -> Rescaled:
        """Compute the constants in float32, left to right."""
        x, y = node.input(0), node.outputs[0]
        scale = x.scale / y.scale
        bias = np.float32(-x.zero_point) * scale
        if not self.divide:
            bias = bias * np.float32(reduced.count)
        if self.half_step:
            bias = bias + np.float32(0.5)
        return Rescaled(self, reduced, scale, bias, y.zero_point, CARRIER[x.type])


@dataclass(frozen=True, slots=True, eq=False)
class Rescaled:
    """Constants of a reduction that follows a rule."""

    rule: Rule
    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # contribution of the input's zero point, LSB of output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]

    def codes(self, real: Array) -> Array:
        """Return the codes of float32 sums or means."""
        scaled = real * self.scale + self.bias
        if self.rule.narrow is Narrow.CLIP_FLOAT:
            whole = nearest_half_away(scaled) + np.float32(self.zero_point)
        else:
            whole = self.integers(scaled)
        if self.rule.narrow is not Narrow.WRAP:
            whole = np.clip(whole, *type_range(self.dtype))
        return np.asarray(whole.astype(self.dtype))

    def integers(self, scaled: Array) -> Array:
        """Return rounded numbers plus the zero point as int32."""
        return np.asarray(floats_to_int32(nearest_half_away(scaled)) + np.int32(self.zero_point))


def eval_rescaled(data: Rescaled, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: every step to float32, then half away. Overflow: the sum wraps int32."""
    real = sum_int32(data.reduced.rows(x)).astype(np.float32)
    if data.rule.divide:
        real = real / np.float32(data.reduced.count)
    return data.codes(real).reshape(data.reduced.shape)


def has_same_quantization(node: Node) -> bool:
    """Return whether input and output have the same scale and zero point."""
    x, y = node.input(0), node.outputs[0]
    return bool(x.scale == y.scale) and x.zero_point == y.zero_point


def eval_mean_of_codes(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int>. Rounding: the quotient towards zero. Overflow: the sum wraps int32."""
    sums = sum_int32(reduced.rows(x))
    quotients = np.sign(sums) * (np.abs(sums) // reduced.count)
    return np.asarray(quotients, x.dtype).reshape(reduced.shape)


def eval_sum_of_codes(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Overflow: the sum wraps the codes' own type."""
    return sum_int32(reduced.rows(x)).astype(x.dtype).reshape(reduced.shape)
