"""What is asked for: recipes, presets, their files and their stamp in a model."""
