"""Recurrent operators: cells that make one step, and loops that feed them sequences."""
