"""Calibration data from files, folders, arrays and iterables: one sample at a time, read as often as needed."""

from tflq.comparison.verification.scaling import Scaling
from tflq.quantization.calibration.samples import Calibration, CalibrationSource

__all__ = ["Calibration", "CalibrationSource", "Scaling"]
