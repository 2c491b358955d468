"""The tables of kernels that runtimes have and register."""
