"""What `tflq reduce` says."""
