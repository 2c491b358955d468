"""Ranges for all weights and activations of a scheme, by the methods of a recipe."""

from tflq.quantization.ranging.activations import activation_ranges
from tflq.quantization.ranging.weights import weight_ranges

__all__ = ["activation_ranges", "weight_ranges"]
