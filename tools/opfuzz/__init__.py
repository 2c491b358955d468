"""Differential fuzzing of single operators: draw a valid model, run it in tflq and in LiteRT, compare every bit."""
