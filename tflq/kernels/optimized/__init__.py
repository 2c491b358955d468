"""Operators that LiteRT's optimized resolver computes in its own way on x86-64; all others are reference kernels."""
