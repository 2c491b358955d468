"""The words by which a recipe names observers, solvers and orders, and what they stand for."""

from __future__ import annotations

from enum import Enum

from tflq.quantization.observers import Histogram, MinMax, MovingAverage, Observer, Percentile, Reservoir
from tflq.quantization.search.alternating import AlternatingCodes, AlternatingEnds
from tflq.quantization.search.golden import GoldenSection
from tflq.quantization.search.grid import Grid
from tflq.quantization.search.octav import Octav
from tflq.quantization.search.problem import Solver


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


#: An observer of each kind, before it saw anything.
OBSERVERS: dict[Watch, Observer] = {
    Watch.MIN_MAX: MinMax(),
    Watch.MOVING_AVERAGE: MovingAverage(),
    Watch.PERCENTILE: Percentile(),
    Watch.HISTOGRAM: Histogram(),
    Watch.RELATIVE: Histogram(bins=1 << 14, relative=True),
    Watch.FIRST_BATCH: Histogram(margin=0.25),
    Watch.VALUES: Reservoir(),
}

SOLVERS: dict[Solving, Solver] = {
    Solving.GRID: Grid(),
    Solving.GOLDEN_SECTION: GoldenSection(),
    Solving.ALTERNATING_ENDS: AlternatingEnds(),
    Solving.ALTERNATING_CODES: AlternatingCodes(),
    Solving.OCTAV: Octav(),
}
