"""Goldens as source code of other languages."""
