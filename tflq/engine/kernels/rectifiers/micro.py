"""RELU6 of TensorFlow Lite Micro: codes are held between those of 0 and 6 in the input's quantization, never rescaled.

| operand | shape | types       | quantization                                 |
|---------|-------|-------------|----------------------------------------------|
| x       | any   | int8, int16 | per tensor                                   |
| y       | as x  | as x        | ignored: codes are those of x                |

Source: tflite-micro (October 2026), activations_common.cc Relu6Prepare; activations.h Relu6Quantized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.activation import quantized_limit
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """Constants of the quantized forms."""

    clamp: Clamp  # LSB of input, the code of 0


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute limits in the input's quantization; the quotient is float32, rounded half away."""
    x, _ = same_type(node)
    dtype = np.dtype(x.type.label)
    node.check(bool(x.scale > 0), "needs a positive per-tensor scale", x, got=x.scale)
    smallest, largest = type_range(dtype)
    six = min(max(quantized_limit(6.0, x.scale, x.zero_point), smallest), largest)
    return prepare_unary(node, OpData(Clamp(int(x.zero_point), six)), eval_quantized, dtype)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: Relu6Quantized. Rounding: none. Overflow: none."""
    return np.clip(x.astype(np.int32), *data.clamp).astype(x.dtype)


KERNELS = valid(micro(), *(Kernel("RELU6", f"{t} -> {t}", prepare_quantized, (1, 3)) for t in ("int8", "int16")))
