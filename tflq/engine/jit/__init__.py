"""Compiled code: plain Python that numba compiles, machine code on disk, threads, calls that can be interrupted."""
