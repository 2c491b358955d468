"""What `tflq diff` says."""
