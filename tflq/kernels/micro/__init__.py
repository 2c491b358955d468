"""Kernels of TensorFlow Lite Micro that differ from LiteRT's reference kernels, one operator a file."""
