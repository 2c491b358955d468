"""Deliberately wrong models, by seed and number, and watched processes that run them."""
