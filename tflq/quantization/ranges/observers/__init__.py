"""Observers of a tensor's values in a stream of samples: frozen values, merged exactly, of bounded size."""

from tflq.quantization.ranges.observers.channels import Channels
from tflq.quantization.ranges.observers.ends import MinMax, MovingAverage
from tflq.quantization.ranges.observers.first_samples import FirstSamples
from tflq.quantization.ranges.observers.histogram import Histogram
from tflq.quantization.ranges.observers.observer import Observer
from tflq.quantization.ranges.observers.percentile import Percentile
from tflq.quantization.ranges.observers.reservoir import Reservoir

__all__ = ["Channels", "FirstSamples", "Histogram", "MinMax", "MovingAverage", "Observer", "Percentile", "Reservoir"]
