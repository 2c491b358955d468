"""STABLEHLO_COMPOSITE: an operator of a name, with a subgraph that computes it where a runtime does not know the name."""
