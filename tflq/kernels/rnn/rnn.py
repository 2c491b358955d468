"""RNN: one step of a plain recurrent cell.

| operand           | shape  | types                                        |
|-------------------|--------|----------------------------------------------|
| x                 | (B, I) | float32                                      |
| weights           | (U, I) | float32; int8, uint8 (read as int8) per tensor |
| recurrent weights | (U, U) | as weights                                   |
| bias              | (U)    | float32                                      |
| hidden state      | (B, U) | float32, variable                            |
| y                 | (B, U) | float32                                      |

Options: fused_activation_function, asymmetric_quantize_inputs (8-bit weights).
Source: LiteRT 2.3 basic_rnn.cc; kernel_utils.cc RnnBatchStep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.recurrent.activation import function_of
from tflq.kernels.families.recurrent.binding import Inputs, bind
from tflq.kernels.families.recurrent.rnn import Cell, check_cell
from tflq.kernels.families.recurrent.sequence import run, state_of
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

_CELL = (1, 2, 3)
_STATE = 4


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """What a step needs."""

    cell: Callable[[Inputs], Cell]
    units: int


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the shapes and bind the cell."""
    x = node.input(0)
    node.check(len(x.shape) == 2, "number of dimensions", x, expected=2, got=len(x.shape))
    batch, depth = x.shape
    units = check_cell(node, _CELL, node.input(_STATE), batch, depth)
    activation = function_of(node)
    data = OpData(bind(node, _CELL, lambda inputs: Cell.of(node, inputs, _CELL, activation)), units)
    return Prepared(((batch, units),), data, evaluate, updates=(_STATE,))


def evaluate(data: OpData, *inputs: Array | None) -> tuple[Array, Array]:
    """Source: rnn::EvalFloat, EvalHybrid. The output and the new hidden state are the same."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[_STATE], data.units)
    run(data.cell(inputs), x[None], None, (hidden,), np.empty((1, *hidden.shape), np.float32), time_major=True)
    return hidden, hidden


KERNELS = (
    Kernel("RNN", "float32 float32 float32 float32 float32 -> float32", prepare, (1, 3)),
    Kernel("RNN", "float32 int8|uint8 int8|uint8 float32 float32 -> float32", prepare, (1, 3)),
)
