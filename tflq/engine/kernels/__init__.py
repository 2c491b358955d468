"""Kernels of operators: one module or folder each; tables are computed from where their rows are valid."""
