"""Rules by which a range becomes a scale and a zero point, each widening it to hold 0, which is then exact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tflq.errors import OptionError
from tflq.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric, limits, symmetric, usable

Reals = NDArray[np.float64]


class RangeRule(Enum):
    """How codes are laid over a range."""

    NUDGE = "nudge"
    """Keep the width and round the zero point: an end may lose up to half a step.

    Source: LiteRT 2.3 ChooseQuantizationParams (quantization_util.h).
    """
    EXTEND = "extend"
    """Move one end outwards until the zero point is an integer, the end that moves less: no value is cut off.

    Source: Hexagon nnlib adjust_minmax_for_zero (quantize.h).
    """
    SYMMETRIC = "symmetric"
    """As far below 0 as above, zero point 0; the least code is not used.

    Source: TensorFlow 2.21 QuantizeV2, mode SCALED with narrow_range (quantize_op.cc).
    """
    UNSIGNED = "unsigned"
    """SYMMETRIC, but what is never negative gets all codes for 0 to high, zero point at the least code.

    Source: TensorFlow 2.21 QuantizeAndDequantizeV2, signed_input false (quantize_and_dequantize_op.h).
    """


@dataclass(frozen=True, slots=True)
class Laying:
    """A rule for codes of one type. SYMMETRIC and UNSIGNED need signed codes: an OptionError otherwise."""

    rule: RangeRule
    type: TensorType

    def __post_init__(self) -> None:
        if limits(self.type)[0] == 0 and self.rule in (RangeRule.SYMMETRIC, RangeRule.UNSIGNED):
            raise OptionError(
                f"rule {self.rule.value} needs signed codes", expected="int8 or int16", got=self.type.label
            )

    @property
    def one_sided(self) -> bool:
        """Whether one magnitude says the whole range."""
        return self.rule is RangeRule.SYMMETRIC or self.type == TensorType.INT16

    @property
    def codes(self) -> tuple[int, int]:
        """Least and greatest code that may be used."""
        low, high = limits(self.type)
        return (-high if self.one_sided else low), high

    def params(self, wanted: Range) -> Params:
        """Scale and zero point of each of the range's channels."""
        if self.one_sided:
            return symmetric(wanted, self.type)
        return _RULES[self.rule](wanted, self.type)

    def nearest(self, values: Reals, wanted: Range) -> Reals:
        """`values` [C, N] as quantization to the range [C] leaves them, in float64."""
        params = self.params(wanted)
        scale, zero = params.scale.astype(np.float64)[:, None], params.zero_point[:, None]
        low, high = self.codes
        steps = np.rint(values / scale)
        np.clip(steps, low - zero, high - zero, out=steps)
        steps *= scale
        return steps


def extended(wanted: Range, type_: TensorType) -> Params:
    """Parameters that lose nothing of the range: one end moves outwards until the zero point is a whole number."""
    low, high = np.minimum(wanted.low, 0.0), np.maximum(wanted.high, 0.0)
    least, greatest = limits(type_)
    steps = greatest - least
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = steps * -low / (high - low)  # distance of the zero point from the least code
        down, up = np.floor(exact), np.ceil(exact)
        raised = np.where(down > 0, -low * (steps - down) / down, np.inf)  # the high end, if the zero point goes down
        lowered = np.where(up < steps, -high * up / (steps - up), -np.inf)  # the low end, if it goes up
        raise_high = raised - high <= low - lowered
        whole = np.abs(exact - np.rint(exact)) <= _WHOLE
        width = np.where(whole, high - low, np.where(raise_high, raised - low, high - lowered))
        zero = np.where(whole, np.rint(exact), np.where(raise_high, down, up))
    empty = low == high
    scale = usable(np.where(empty, 0.0, width / steps))
    return Params(type_, scale, np.where(empty, least, least + zero).astype(np.int64))


#: How far from an integer a zero point may lie that counts as one (nnlib's own tolerance).
_WHOLE = 2.0**-14


def unsigned(wanted: Range, type_: TensorType) -> Params:
    """Symmetric parameters, but all codes above 0 for channels that are never negative."""
    two_sided = symmetric(wanted, type_)
    least, greatest = limits(type_)
    positive = wanted.low >= 0
    above = usable(np.maximum(wanted.high, 0.0) / (greatest - least))
    return Params(type_, np.where(positive, above, two_sided.scale), np.where(positive, least, 0).astype(np.int64))


_RULES = {RangeRule.NUDGE: asymmetric, RangeRule.EXTEND: extended, RangeRule.UNSIGNED: unsigned}
