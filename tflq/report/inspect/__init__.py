"""What `tflq inspect` says."""
