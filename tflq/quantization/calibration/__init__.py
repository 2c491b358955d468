"""Calibration data from files, folders, arrays and iterables: one sample at a time, as often as asked for."""

from tflq.quantization.calibration.samples import Calibration, CalibrationSource
from tflq.verification.scaling import Scaling

__all__ = ["Calibration", "CalibrationSource", "Scaling"]
