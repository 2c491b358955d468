"""The choice of ranges, as fields of a recipe: the observer, the objective and the search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Watch(Enum):
    """The observer of a tensor: its range is the start of a search, or the final range without a search."""

    MIN_MAX = "min-max"
    MOVING_AVERAGE = "moving-average"
    PERCENTILE = "percentile"
    HISTOGRAM = "histogram"
    """Bins that widen until they hold all values."""
    RELATIVE = "relative"
    """Widening bins in which each sample counts by the reciprocal of its power."""
    FIRST_BATCH = "first-batch"
    """Bins over the range of the first batch and a quarter more on either side."""
    VALUES = "values"
    """A random choice of the values."""


class Solving(Enum):
    """The solver that finds the range with the least loss."""

    GRID = "grid"
    GOLDEN_SECTION = "golden-section"
    ALTERNATING_ENDS = "alternating-ends"
    ALTERNATING_CODES = "alternating-codes"
    OCTAV = "octav"


class Target(Enum):
    """The place where the loss is measured."""

    VALUES = "values"
    """On the tensor itself."""
    OUTPUT = "output"
    """On the outputs of the operators that multiply it; on the tensor itself if there are none."""
    SCORES = "scores"
    """VALUES, but on the distribution if only the first output's SOFTMAX reads the scores, and VALUES is too
    coarse: rounding the scores alone costs 0.001 nats.
    """


class Order(Enum):
    """The parts that are already quantized while activations are observed."""

    FLOAT = "float"
    """Nothing."""
    WEIGHTS_FIRST = "weights-first"
    """All weights."""
    LAYER_BY_LAYER = "layer-by-layer"
    """All weights, and every earlier activation: each tensor has its own pass over the samples."""
    ONLINE = "online"
    """All weights, and earlier activations by the ranges known so far, in a single pass."""


class Objective(Enum):
    """The comparison of a value x with its quantized form y; p is the weight of x."""

    L2 = "l2"
    """sum p (x - y)^2 / sum p."""
    WEIGHTED_L2 = "weighted-l2"
    """sum p |x| (x - y)^2 / sum p |x|: large values count more."""
    EARTH_MOVER = "earth-mover"
    """sum p |x - y| / sum p: quantization keeps order, so carrying each value to its own code is the cheapest way."""
    COSINE = "cosine"
    """1 - cos(x, y), the angle between all values and their quantized forms."""
    KL = "kl"
    """Kullback-Leibler divergence of the quantized histogram from the clipped one.

    Source: Migacz 2017, "8-bit inference with TensorRT".
    """
    JENSEN_SHANNON = "jensen-shannon"
    """Jensen-Shannon divergence of the quantized histogram from the whole one: bounded, and defined for empty bins."""


class RangeRule(Enum):
    """The rule that assigns codes to a range."""

    NUDGE = "nudge"
    """Keep the width and round the zero point: an end may lose up to half a step.

    Source: LiteRT 2.3 ChooseQuantizationParams (quantization_util.h).
    """
    EXTEND = "extend"
    """Move one end outwards, the one that moves less, until the zero point is an integer: no value is clipped.

    Source: Hexagon nnlib adjust_minmax_for_zero (quantize.h).
    """
    SYMMETRIC = "symmetric"
    """Symmetric around 0, zero point 0; the least code is unused.

    Source: TensorFlow 2.21 QuantizeV2, mode SCALED with narrow_range (quantize_op.cc).
    """
    UNSIGNED = "unsigned"
    """SYMMETRIC, but ranges that are never negative get all codes for 0 to high, zero point at the least code.

    Source: TensorFlow 2.21 QuantizeAndDequantizeV2, signed_input false (quantize_and_dequantize_op.h).
    """


@dataclass(frozen=True, slots=True)
class Search:
    """The objective that a range minimizes, the place where it is measured, and the solver."""

    objective: Objective = Objective.L2
    solver: Solving = Solving.GRID
    target: Target = Target.VALUES


@dataclass(frozen=True, slots=True)
class Ranging:
    """The choice of ranges of activations and weights; without a search, the observed ranges are used.

    With `two_passes`, a first pass over the samples finds the ranges within which the second one counts.
    """

    watch: Watch = Watch.MIN_MAX
    rule: RangeRule = RangeRule.NUDGE
    activations: Search | None = None
    weights: Search | None = None
    order: Order = Order.FLOAT
    two_passes: bool = False
