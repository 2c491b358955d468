"""What `tflq verify` says."""
