"""Rewrites that keep a model's function and leave it to operators on which all runtimes agree."""
