"""The reports of `tflq explain`."""
