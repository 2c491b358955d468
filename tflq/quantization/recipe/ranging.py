"""How ranges are chosen, as fields of a recipe: what is observed, what is minimized, and by which search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Watch(Enum):
    """What observes a tensor: its range is where a search begins, or the range itself where nothing is searched."""

    MIN_MAX = "min-max"
    MOVING_AVERAGE = "moving-average"
    PERCENTILE = "percentile"
    HISTOGRAM = "histogram"
    """Bins that widen until they hold everything."""
    RELATIVE = "relative"
    """The same, each sample counting by the reciprocal of its own power."""
    FIRST_BATCH = "first-batch"
    """Bins laid over the range of the first batch and a quarter more on either side."""
    VALUES = "values"
    """A random choice of the values themselves."""


class Solving(Enum):
    """How the range that loses least is found."""

    GRID = "grid"
    GOLDEN_SECTION = "golden-section"
    ALTERNATING_ENDS = "alternating-ends"
    ALTERNATING_CODES = "alternating-codes"
    OCTAV = "octav"


class Target(Enum):
    """Where the loss is measured."""

    VALUES = "values"
    """On the tensor itself."""
    OUTPUT = "output"
    """On what the operators that multiply it make of it; on the tensor itself where there are none."""
    SCORES = "scores"
    """As VALUES, but on the distribution for scores that nothing but the first output's SOFTMAX reads, where VALUES
    would leave them coarse: where rounding these alone costs 0.001 nats.
    """


class Order(Enum):
    """What is quantized already while activations are observed."""

    FLOAT = "float"
    """Nothing."""
    WEIGHTS_FIRST = "weights-first"
    """All weights."""
    LAYER_BY_LAYER = "layer-by-layer"
    """All weights, and every activation made before: each tensor has a pass over the samples of its own."""
    ONLINE = "online"
    """All weights, and the activations made before by the ranges known so far, in a single pass."""


class Objective(Enum):
    """How a value x and its quantized form y are compared, p standing for the weight of x."""

    L2 = "l2"
    """sum p (x - y)^2 / sum p."""
    WEIGHTED_L2 = "weighted-l2"
    """sum p |x| (x - y)^2 / sum p |x|: what is large counts more."""
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
class Search:
    """What a range is to minimize, measured where, and how it is found."""

    objective: Objective = Objective.L2
    solver: Solving = Solving.GRID
    target: Target = Target.VALUES


@dataclass(frozen=True, slots=True)
class Ranging:
    """How the ranges of activations and weights are chosen; without a search they are what is observed.

    With `two_passes` a first pass over the samples finds the ranges within which the second one counts.
    """

    watch: Watch = Watch.MIN_MAX
    rule: RangeRule = RangeRule.NUDGE
    activations: Search | None = None
    weights: Search | None = None
    order: Order = Order.FLOAT
    two_passes: bool = False
