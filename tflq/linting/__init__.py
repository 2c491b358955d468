"""Lint: breaches of the 8-bit quantization spec and of what kernels require, told from the file. Nothing is run."""

from tflq.linting.findings import Finding, Level
from tflq.linting.session import Lint, lint

__all__ = ["Finding", "Level", "Lint", "lint"]
