"""The reports of `tflq conform`."""
