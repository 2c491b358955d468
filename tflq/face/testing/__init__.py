"""Goldens in the tests of other projects: a pytest plugin."""
