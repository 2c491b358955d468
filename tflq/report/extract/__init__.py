"""What `tflq extract` says."""
