"""Calibration data from files, folders, arrays and iterables: one sample at a time, read as often as needed."""

from tflq.quantization.calibration.samples import Calibration, CalibrationSource
from tflq.verification.scaling import Scaling

__all__ = ["Calibration", "CalibrationSource", "Scaling"]
