"""Rules by which a range becomes a scale and a zero point. Each widens the range to hold 0, which is then exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.code_limits import code_limits
from tflq.errors import OptionError
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric, symmetric, usable
from tflq.quantization.recipe.ranging import RangeRule

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantizer:
    """A rule for codes of one type. SYMMETRIC and UNSIGNED need signed codes, and raise OptionError otherwise."""

    rule: RangeRule
    type: TensorType

    def __post_init__(self) -> None:
        if code_limits(self.type)[0] == 0 and self.rule in (RangeRule.SYMMETRIC, RangeRule.UNSIGNED):
            raise OptionError(
                f"rule {self.rule.value} needs signed codes", expected="int8 or int16", got=self.type.label
            )

    @property
    def one_sided(self) -> bool:
        """True if one magnitude defines the whole range."""
        return self.rule is RangeRule.SYMMETRIC or self.type == TensorType.INT16

    @property
    def codes(self) -> tuple[int, int]:
        """Least and greatest code that may be used."""
        low, high = code_limits(self.type)
        return (-high if self.one_sided else low), high

    def params(self, span: Range) -> Params:
        """Return scale and zero point of each of the range's channels."""
        if self.one_sided:
            return symmetric(span, self.type)
        return _RULES[self.rule](span, self.type)

    def nearest(self, values: Reals, span: Range) -> Reals:
        """Return `values` [C, N] after quantization to the range [C] and back, in float64."""
        params = self.params(span)
        scale, zero = params.scale.astype(np.float64)[:, None], params.zero_point[:, None]
        low, high = self.codes
        steps = np.rint(values / scale)
        np.clip(steps, low - zero, high - zero, out=steps)
        steps *= scale
        return steps


def extend(span: Range, type_: TensorType) -> Params:
    """Return parameters that lose nothing of the range: one end moves outwards until the zero point is an integer."""
    low, high = np.minimum(span.low, 0.0), np.maximum(span.high, 0.0)
    least, greatest = code_limits(type_)
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


#: The tolerance within which a zero point counts as an integer (nnlib's own).
_WHOLE = 2.0**-14


def unsigned(span: Range, type_: TensorType) -> Params:
    """Return symmetric parameters; channels that are never negative use only codes from 0 up."""
    two_sided = symmetric(span, type_)
    least, greatest = code_limits(type_)
    positive = span.low >= 0
    above = usable(np.maximum(span.high, 0.0) / (greatest - least))
    return Params(type_, np.where(positive, above, two_sided.scale), np.where(positive, least, 0).astype(np.int64))


_RULES = {RangeRule.NUDGE: asymmetric, RangeRule.EXTEND: extend, RangeRule.UNSIGNED: unsigned}
