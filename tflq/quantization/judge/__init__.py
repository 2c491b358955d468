"""Judges of integer models: comparison, selection, sparing of sensitive operators, check in a runtime."""
