"""The table of LiteRT's reference kernels: every kernel file, named once."""

from __future__ import annotations

from tflq.kernels.kernel import table
from tflq.kernels.reference import (
    leaky_relu,
)

REFERENCE = table(
    leaky_relu.KERNELS,
)
