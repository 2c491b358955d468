"""What `tflq compare` says."""
