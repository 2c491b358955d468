"""LiteRT's reference kernels, one operator a file."""
