"""What `tflq record` says."""
