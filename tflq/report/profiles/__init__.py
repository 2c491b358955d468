"""What `tflq profiles` says."""
