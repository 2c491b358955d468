"""What is remembered of a tensor's values while samples stream by: frozen values, merged exactly, of bounded size."""

from tflq.quantization.observers.channels import Channels
from tflq.quantization.observers.ends import MinMax, MovingAverage
from tflq.quantization.observers.histogram import Histogram
from tflq.quantization.observers.kept import Kept
from tflq.quantization.observers.observer import Observer
from tflq.quantization.observers.percentile import Percentile
from tflq.quantization.observers.reservoir import Reservoir

__all__ = ["Channels", "Histogram", "Kept", "MinMax", "MovingAverage", "Observer", "Percentile", "Reservoir"]
