"""LEAKY_RELU of r1.15: y = x for x >= 0, alpha * x below, where "x" is a code and alpha another.

| operand | shape | types         | quantization |
|---------|-------|---------------|--------------|
| x       | any   | uint8         | per tensor   |
| y       | as x  | uint8         | per tensor   |

Options: alpha, quantized with the input's own scale and zero point and held inside 0 to 255.
Codes at the input's zero point or above are copied, regardless of the output's quantization. Below it, the product of
the two centred codes is rescaled by scale(x)**2 / scale(y), which has to be below 1.
The kernel keeps the centred alpha in a function-local static: the first LEAKY_RELU that a process evaluates sets it for
all later ones. KERNELS give every operator its own alpha; STATIC_ALPHA are the rows that take an interpreter for a
process.
Source: TensorFlow r1.15 lite/kernels/activations.cc LeakyReluPrepare, LeakyReluEval; reference_ops.h QuantizeLeakyRelu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.scaled_sum import smaller_than_one
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session, valid
from tflq.engine.kernels.table import table
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.rounding import half_away
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of an operator."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    alpha: int  # LSB of input, centred
    negative: OutputStage  # LSB of input squared -> LSB of output


def op_data(node: Node, arithmetic: Arithmetic) -> OpData:
    """Compute the real multiplier in float32, left to right, then widen it to float64."""
    x, y = same_type(node)
    code = code_of_alpha(np.float32(node.options["alpha"]), x.scale, x.zero_point)
    stage = arithmetic.requantize(smaller_than_one(np.float64(x.scale * x.scale / y.scale)))
    return OpData(x.zero_point, y.zero_point, code - x.zero_point, stage)


def code_of_alpha(alpha: np.float32, scale: np.float32, zero_point: int) -> int:
    """Quantize in float32, round half away and clip to 0 to 255: a negative alpha may saturate."""
    return min(max(half_away(float(np.float32(zero_point) + alpha / scale)), 0), 255)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_unary(node, op_data(node, arithmetic), evaluate, np.dtype(np.uint8))


def evaluate(data: OpData, x: Array) -> Array:
    """Source: QuantizeLeakyRelu. Rounding: below zero once, by the stage. Overflow: none (a product has 17 bits)."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    scaled = data.negative(centred * np.int32(data.alpha)) + np.int32(data.output_zero_point)
    below = np.clip(scaled, *type_range(np.uint8)).astype(np.uint8)
    return np.where(centred >= 0, x, below)


def prepare_static(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like `prepare`, without a table: alpha is that of the first LEAKY_RELU run in the process."""
    x, _ = same_type(node)
    return Prepared((x.shape,), op_data(node, arithmetic), evaluate_static)


def evaluate_static(data: OpData, session: Session, x: Array) -> Array:
    """Evaluate with the alpha of the first LEAKY_RELU that ran in this process."""
    alpha = session.resources.setdefault(_STATIC, data.alpha)
    return evaluate(OpData(data.input_zero_point, data.output_zero_point, alpha, data.negative), x)


_STATIC = "alpha_value of QuantizeLeakyRelu"

KERNELS = valid(tf1(), Kernel("LEAKY_RELU", "uint8 -> uint8", prepare, (1, 1)))
STATIC_ALPHA = table(valid(tf1(), Kernel("LEAKY_RELU", "uint8 -> uint8", prepare_static, (1, 1), session=True)))
