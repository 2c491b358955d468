"""What `tflq run` says."""
