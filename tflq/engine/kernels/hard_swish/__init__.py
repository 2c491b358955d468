"""Kernels of this operator and its kin."""
