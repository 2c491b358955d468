"""STABLEHLO_COMPOSITE: a named operator, with a subgraph for runtimes that do not know the name."""
