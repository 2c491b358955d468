"""What `tflq overflow` says."""
