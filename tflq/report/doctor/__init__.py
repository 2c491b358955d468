"""What `tflq doctor` says."""
