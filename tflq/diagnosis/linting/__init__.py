"""Lint: violations of the 8-bit quantization spec and of kernels' requirements, found in the file."""
