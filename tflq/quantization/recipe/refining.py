"""The refinements that follow the choice of ranges, as fields of a recipe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tflq.quantization.recipe.bounds import check_number


class Rounding(Enum):
    """The way in which weights become codes."""

    NEAREST = "nearest"
    GPTQ = "gptq"
    ADAROUND = "adaround"
    BIT_SPLIT = "bit-split"


class BiasCorrection(Enum):
    """The error that biases correct: none, the mean error of the weights, or that of the whole integer model so far."""

    NONE = "none"
    ANALYTIC = "analytic"
    EMPIRICAL = "empirical"


@dataclass(frozen=True, slots=True)
class Refining:
    """The refinements of a recipe.

    `match_inputs` lets weights correct errors of their inputs. `match_variance` rescales output channels to the float
    model's variance. At most `samples` of the calibration data are used.
    """

    rounding: Rounding = Rounding.NEAREST
    bias: BiasCorrection = BiasCorrection.NONE
    match_inputs: bool = False
    match_variance: bool = False
    samples: int = 128

    def __post_init__(self) -> None:
        check_number("samples", self.samples, 1)

    @property
    def changes_nothing(self) -> bool:
        """True if weights are rounded to nearest and nothing else is done."""
        return self == Refining(samples=self.samples)

    @property
    def needs_squares(self) -> bool:
        """True if second moments are needed, not means alone."""
        return self.rounding != Rounding.NEAREST or self.match_inputs or self.match_variance
