"""LOCAL_RESPONSE_NORMALIZATION: x * (bias + alpha * sum of squares over neighbouring channels) ** -beta.

| operand | shape      | types   |
|---------|------------|---------|
| x       | N, H, W, C | float32 |
| y       | as x       | float32 |

Options: radius, bias, alpha, beta. Channel c sees channels c - radius to c + radius - 1: one less above than below.
Exactness: exact on the same libm (pow).
Source: LiteRT 2.3, local_response_norm.cc; reference_ops::LocalResponseNormalization.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.operands import require_rank
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm_double import power
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The options: float32 in the file, float64 in the source's structure."""

    radius: int  # channels
    bias: float
    alpha: float
    beta: float


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the options only."""
    x = node.input(0)
    require_rank(node, x, 4)
    bias, alpha, beta = (float(node.options[name]) for name in ("bias", "alpha", "beta"))
    radius = min(int(node.options["radius"]), x.shape[3])
    return Prepared((x.shape,), OpData(radius, bias, alpha, beta), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Source: LocalResponseNormalization. Rounding: float32 squares and sums, from the lowest channel on; the
    factor in float64, to float32 once.
    """
    squares, sums = x * x, np.zeros_like(x)
    channels = x.shape[3]
    for offset in range(-data.radius, data.radius):
        first, last = max(0, -offset), min(channels, channels - offset)
        if first < last:
            sums[..., first:last] += squares[..., first + offset : last + offset]
    bases = data.bias + data.alpha * sums.astype(np.float64)
    return x * power(bases, -data.beta).astype(np.float32)


_REFERENCE = (Kernel("LOCAL_RESPONSE_NORMALIZATION", "float32 -> float32", prepare, (1, 1), exactness=SAME_LIBM),)
KERNELS = (*_REFERENCE, *valid(opt(), *unclaimed_floats(_REFERENCE)))
