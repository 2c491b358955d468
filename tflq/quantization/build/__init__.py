"""Build an integer model: ranges become codes, and the float model is rewritten."""
