"""FULLY_CONNECTED with shuffled weights: blocks of four units by sixteen inputs, for the cells of old LSTMs.

| operand   | shape              | types | quantization              |
|-----------|--------------------|-------|---------------------------|
| x         | B * K values       | uint8 | per tensor                |
| w         | O, K               | uint8 | per tensor                |
| bias      | O                  | int32 | its scale is checked      |
| y         | B, O, or x's and O | int16 | per tensor                |
| workspace | B * K values       | uint8 | not looked at             |

B is 1 or 4, K a multiple of 16, O of 4. Options: keep_num_dims, fused activation. Weights are stored with their top bit
flipped; all zero points count as 128, the output's as 0. The workspace holds the input with its top bit flipped, for
B = 4 shuffled by sixteens too.
Source: LiteRT 2.3, fully_connected.cc EvalShuffledQuantized; reference/fully_connected.h ShuffledFullyConnected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.families.contraction import Output, bias_of, require_quantized
from tflq.engine.kernels.fully_connected.shapes import SHUFFLED, fixed_point_reals, output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.engine.numerics.stages import OutputPipeline, repeat
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_UNITS, _INPUTS = 4, 16
_TOP_BIT = np.uint8(0x80)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    workspace: Shape
    products: Contraction
    output: Output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with the fixed-point multiplier of all uint8 forms."""
    shape = output_shape(node, SHUFFLED)
    x, w, bias, (y, workspace) = node.input(0), node.input(1), node.input(2), node.outputs
    require_quantized(node, x, w)
    units, length = w.shape
    batch = math.prod(shape[:-1])
    if batch not in (1, 4) or length % _INPUTS or units % _UNITS or not length:
        raise UndefinedResultError(node.op, f"shuffled weights {w.shape} for {batch} rows")
    fits = math.prod(workspace.shape) == batch * length
    node.check(fits, "number of elements", workspace, expected=batch * length, got=workspace.shape)
    stage = arithmetic.requantize(fixed_point_reals(node, arithmetic, (x, w, y), bias))
    blocks = node.constant(1).view(np.int8).reshape(units // _UNITS, length // _INPUTS, _UNITS, _INPUTS)
    data = OpData(
        shape=shape,
        workspace=workspace.shape,
        products=Contraction.of(blocks.swapaxes(1, 2).reshape(units, length).T, (-128, 127)),
        output=Output(
            repeat(bias_of(node.constant(2), units, np.int32)),
            OutputPipeline(stage, ZeroPoint(0), code_range(node, y, np.int16), np.dtype(np.int16)),
        ),
    )
    return Prepared((shape, workspace.shape), data, evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array) -> tuple[Array, Array]:
    """Source: ShuffledFullyConnected. Rounding: by the stage. Overflow: the accumulator wraps."""
    out = np.empty(data.shape, np.int16)
    length, units = data.products.shape
    rows = (np.ascontiguousarray(x).reshape(-1)[: out.size // units * length] ^ _TOP_BIT).reshape(-1, length)
    sums = accumulators_int32(data.products(rows.view(np.int8).astype(data.products.real)))
    data.output.into(sums, out.reshape(-1, units))
    shuffled = rows.reshape(len(rows), -1, _INPUTS).swapaxes(0, 1)
    return out, np.ascontiguousarray(shuffled).reshape(data.workspace)


ROWS = (Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16 uint8", prepare, (1, 14)),)
