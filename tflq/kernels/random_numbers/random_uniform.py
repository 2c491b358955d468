"""RANDOM_UNIFORM: floats in [0, 1), 23 bits each.

| operand | shape       | types   | quantization |
|---------|-------------|---------|--------------|
| shape   | (rank of y) | int32   | none         |
| y       | shape       | float32 | none         |

Options: seed, seed2; not both 0.
Source: LiteRT 2.3, random_ops.cc GenerateRandomUniformNumbers.
"""

from __future__ import annotations

from tflq.kernels.families.randomness import kernels
from tflq.numerics.philox import unit_floats

KERNELS = kernels("RANDOM_UNIFORM", unit_floats)
