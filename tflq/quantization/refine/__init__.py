"""Refinements of an integer model with known ranges: factors, biases, roundings."""
