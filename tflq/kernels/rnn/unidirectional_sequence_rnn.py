"""UNIDIRECTIONAL_SEQUENCE_RNN: a plain recurrent cell over a sequence.

| operand           | shape                  | types                                          |
|-------------------|------------------------|------------------------------------------------|
| x                 | (B, T, I) or (T, B, I) | float32                                        |
| weights           | (U, I)                 | float32; int8, uint8 (read as int8) per tensor |
| recurrent weights | (U, U)                 | as weights                                     |
| bias              | (U)                    | float32                                        |
| hidden state      | (B, U)                 | float32, variable                              |
| y                 | as x, U last           | float32                                        |

Options: time_major, fused_activation_function, asymmetric_quantize_inputs (8-bit weights).
Source: LiteRT 2.3 unidirectional_sequence_rnn.cc; kernel_utils.cc RnnBatchStep.
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
    """What the loop needs."""

    cell: Callable[[Inputs], Cell]
    units: int
    time_major: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the shapes and bind the cell."""
    x = node.input(0)
    node.check(len(x.shape) == 3, "number of dimensions", x, expected=3, got=len(x.shape))
    time_major = bool(node.options.get("time_major", False))
    batch = x.shape[1 if time_major else 0]
    units = check_cell(node, _CELL, node.input(_STATE), batch, x.shape[2])
    activation = function_of(node)
    data = OpData(bind(node, _CELL, lambda inputs: Cell.of(node, inputs, _CELL, activation)), units, time_major)
    return Prepared(((*x.shape[:2], units),), data, evaluate, updates=(_STATE,))


def evaluate(data: OpData, *inputs: Array | None) -> tuple[Array, Array]:
    """Source: unidirectional_sequence_rnn EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[_STATE], data.units)
    out = np.empty((*x.shape[:2], data.units), np.float32)
    run(data.cell(inputs), x, None, (hidden,), out, time_major=data.time_major)
    return out, hidden


KERNELS = (
    Kernel("UNIDIRECTIONAL_SEQUENCE_RNN", "float32 float32 float32 float32 float32 -> float32", prepare, (1, 3)),
    Kernel("UNIDIRECTIONAL_SEQUENCE_RNN", "float32 int8|uint8 int8|uint8 float32 float32 -> float32", prepare, (1, 3)),
)
