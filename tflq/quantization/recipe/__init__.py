"""Recipes, presets, their files and their stamp in a model."""
