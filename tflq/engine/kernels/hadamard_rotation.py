"""aeq.hadamard_rotation: a Walsh-Hadamard transform of each run of elements, as ai-edge-quantizer puts into models.

| operand | shape                         | types          | quantization |
|---------|-------------------------------|----------------|--------------|
| x       | rank 2 or more                | float32, int32 | none         |
| y       | any of as many elements as x  | float32, int32 | none         |

Options: hadamard_size; another number than a power of two leaves x as it is. random_binary_vector does not count. The
bits of int32 are taken as those of float32.
Source: LiteRT 2.3, hadamard_rotation.cc. Of the resolvers only the optimized one has it, since LiteRT 1.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.families.custom_options import integer, options_of
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Output shape and type; elements of a run, how many runs are transformed, and the factor, 1 / sqrt(size)."""

    shape: Shape
    dtype: np.dtype[np.generic]
    size: int
    runs: int
    factor: np.float32


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Keep the output's declared shape. The factor is a float64 root and quotient, rounded to float32."""
    x, y = node.input(0), node.outputs[0]
    node.check(len(x.shape) >= 2, "rank", x, expected="2 or more", got=len(x.shape))
    node.check(prod(y.shape) == prod(x.shape), "number of elements", y, expected=prod(x.shape), got=prod(y.shape))
    size = integer(options_of(node), "hadamard_size")
    node.check(size > 0, "custom option hadamard_size", expected="1 or more", got=size)
    rows = x.shape[:3] if len(x.shape) == 3 else x.shape[:2]  # of higher ranks only the first two axes count
    runs = prod(rows[:-1]) * (rows[-1] // size) if size & (size - 1) == 0 else 0
    data = OpData(y.shape, CARRIER[y.type], size, runs, np.float32(1 / np.sqrt(np.float64(size))))
    return Prepared((y.shape,), data, evaluate, work=prod(x.shape) * size.bit_length())


def evaluate(data: OpData, x: Array) -> Array:
    """Source: Eval, FWHTFast. Rounding: one float32 sum or difference for each butterfly, then one product."""
    y = x.reshape(-1).copy().view(np.float32)
    block = y[: data.runs * data.size].reshape(data.runs, data.size)
    half = 1
    while half < data.size:
        pairs = block.reshape(data.runs, data.size // (2 * half), 2, half)
        first, second = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0], pairs[:, :, 1] = first + second, first - second
        half *= 2
    block *= data.factor
    return y.view(data.dtype).reshape(data.shape)


KERNELS = (Kernel("aeq.hadamard_rotation", "float32|int32 -> float32|int32", prepare, (1, 1)),)
