"""What `tflq prove` says."""
