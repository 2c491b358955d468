"""Operators that LiteRT computes in its own way on AArch64; all others are as on x86-64."""
