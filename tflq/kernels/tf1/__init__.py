"""Kernels of TensorFlow r1.15 where they compute otherwise than LiteRT's reference kernels."""
