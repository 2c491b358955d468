"""Kernels of operators, kin in one module; tables are computed from where their rows are valid."""
