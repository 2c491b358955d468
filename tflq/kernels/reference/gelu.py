"""GELU: y = x * Phi(x), exactly or by its tanh approximation.

| operand | shape | types              | quantization |
|---------|-------|--------------------|--------------|
| x       | any   | uint8, int8, int16 | per tensor   |
| y       | as x  | as x               | per tensor   |

Options: approximate. float32 is not here: its vector functions differ from build to build of the runtime.
Source: LiteRT 2.3, activations.cc GeluPrepare; reference/gelu.h GeluTransform, GeluTransformApproximate.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.unary import prepare_tabulated
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.libm import erfcf, tanhf
from tflq.numerics.multiply_add import MultiplyAdd

_HALF, _ONE = np.float32(0.5), np.float32(1)
_MINUS_SQRT_HALF = np.float32(-np.sqrt(0.5))
_SQRT_2_OVER_PI = np.float32(1.12837916709551257390 * 0.70710678118654752440)


def gelu(x: Array) -> Array:
    """x/2 * erfc(-x / sqrt(2)), float32, left to right."""
    return np.asarray(_HALF * x * erfcf(x * _MINUS_SQRT_HALF))


def gelu_approximate(x: Array, multiply_add: MultiplyAdd) -> Array:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), float32, left to right."""
    argument = _SQRT_2_OVER_PI * multiply_add(np.float32(0.044715) * x * x, x, x)
    return np.asarray(_HALF * x * (_ONE + tanhf(argument)))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """A table, of 256 codes or 513 samples."""
    transform = partial(gelu_approximate, multiply_add=arithmetic.multiply_add) if node.options["approximate"] else gelu
    return prepare_tabulated(node, transform, arithmetic.multiply_add)


KERNELS = tuple(Kernel("GELU", f"{t} -> {t}", prepare, (1, 3)) for t in ("uint8", "int8", "int16"))
