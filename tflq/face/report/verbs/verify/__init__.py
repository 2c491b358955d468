"""The reports of `tflq verify`."""
