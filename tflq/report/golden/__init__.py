"""What `tflq golden` says."""
