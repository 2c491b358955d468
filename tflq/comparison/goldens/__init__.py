"""Goldens: recordings of runtimes, kept and read."""
