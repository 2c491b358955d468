"""The reports of `tflq compare`, and the figures that it shares with `tflq quantize`."""
