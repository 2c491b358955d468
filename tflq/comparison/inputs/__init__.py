"""Inputs of models: generated, read and prepared."""
