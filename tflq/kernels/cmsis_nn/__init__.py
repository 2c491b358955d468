"""Kernels of CMSIS-NN, as TensorFlow Lite Micro calls them."""
