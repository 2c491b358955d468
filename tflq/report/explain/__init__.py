"""What `tflq explain` says."""
