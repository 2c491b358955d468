"""Goldens in the tests of other projects: a plugin of pytest."""
