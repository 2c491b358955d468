"""What `tflq lint` says."""
