"""What `tflq quantize` says."""
