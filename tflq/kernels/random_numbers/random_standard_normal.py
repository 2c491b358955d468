"""RANDOM_STANDARD_NORMAL: floats of mean 0 and deviation 1.

| operand | shape       | types   | quantization |
|---------|-------------|---------|--------------|
| shape   | (rank of y) | int32   | none         |
| y       | shape       | float32 | none         |

Options: seed, seed2; not both 0.
Exactness: exact on the same libm (logf, sinf, cosf).
Source: LiteRT 2.3, random_ops.cc GenerateRandomStandardNormalNumbers.
"""

from __future__ import annotations

from tflq.kernels.families.randomness import kernels
from tflq.kernels.kernel import Array
from tflq.numerics.philox import Words, normal_floats


def normals(words: Words) -> Array:
    """Two pairs of floats of each block."""
    return normal_floats(words.reshape(-1, 2))


KERNELS = kernels("RANDOM_STANDARD_NORMAL", normals)
