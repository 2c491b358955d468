"""The reports of `tflq quantize`, and the cards of its recipe and its calibration data."""
