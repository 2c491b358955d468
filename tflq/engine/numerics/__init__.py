"""Integers in, integers out: fixed point, multipliers, output stages, tables, exact contraction."""
