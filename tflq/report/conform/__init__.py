"""What `tflq conform` says."""
