"""The reports of `tflq fit`."""
