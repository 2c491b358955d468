"""What `tflq fit` says."""
