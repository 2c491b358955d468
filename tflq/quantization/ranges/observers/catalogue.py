"""The observer for each of the recipe's words."""

from __future__ import annotations

from tflq.quantization.ranges.observers.ends import MinMax, MovingAverage
from tflq.quantization.ranges.observers.histogram import Histogram
from tflq.quantization.ranges.observers.observer import Observer
from tflq.quantization.ranges.observers.percentile import Percentile
from tflq.quantization.ranges.observers.reservoir import Reservoir
from tflq.quantization.recipe.ranging import Watch

#: A new observer of each kind.
OBSERVERS: dict[Watch, Observer] = {
    Watch.MIN_MAX: MinMax(),
    Watch.MOVING_AVERAGE: MovingAverage(),
    Watch.PERCENTILE: Percentile(),
    Watch.HISTOGRAM: Histogram(),
    Watch.RELATIVE: Histogram(bins=1 << 14, relative=True),
    Watch.FIRST_BATCH: Histogram(margin=0.25),
    Watch.VALUES: Reservoir(),
}
