"""Choose ranges for all weights and activations of a scheme, by the methods of a recipe."""
