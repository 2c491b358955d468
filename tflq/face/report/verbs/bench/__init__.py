"""The report of `tflq bench`."""
