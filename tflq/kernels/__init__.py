"""Kernels of operators: one operator a file, tables concatenated explicitly."""
