"""Lint: violations of the 8-bit quantization spec and of kernels' requirements, found in the file. Nothing is run."""

from tflq.linting.findings import Finding, Level
from tflq.linting.session import Lint, lint, portable_counts

__all__ = ["Finding", "Level", "Lint", "lint", "portable_counts"]
