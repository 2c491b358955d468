"""UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM cell over a sequence.

| operand           | position   | shape   | float form    | 8-bit weights         | 8-bit activations      |
|-------------------|------------|---------|---------------|-----------------------|------------------------|
| x                 | 0          | N, T, I | float32       | float32               | int8                   |
| input weights     | 1, 2, 3, 4 | C, I    | float32       | int8, uint8           | int8, symmetric        |
| recurrent weights | 5, 6, 7, 8 | C, O    | float32       | int8, uint8           | int8, symmetric        |
| peepholes         | 9, 10, 11  | C       | float32       | int8, uint8           | int16, symmetric       |
| biases            | 12 .. 15   | C       | float32       | float32               | int32                  |
| projection        | 16, 17     | O, C; O | float32       | int8, uint8; float32  | int8; int32            |
| output state      | 18         | N * O   | float32       | float32               | int8; all variable     |
| cell state        | 19         | N * C   | float32       | float32               | int16, power of two    |
| layer norms       | 20 .. 23   | C       | float32       | float32               | int16                  |
| y                 |            | N, T, O | float32       | float32               | int8                   |

x and y are T, N, . with time_major. Gates come in the order input, forget, cell, output (peepholes: no cell). Without
positions 1 and 5 the input gate is 1 - forget gate (CIFG). Peepholes, projection and layer norms may be absent.
Recurrent weights of one dimension are a diagonal, float32 also where other weights have 8 bits. uint8 weights are read
as int8. All quantization is per tensor.
Options: time_major, cell_clip, proj_clip, fused_activation_function (float activations), asymmetric_quantize_inputs.
Source: LiteRT 2.3 unidirectional_sequence_lstm.cc; lstm_eval.cc EvalFloat, EvalHybrid, EvalInteger8x8_16.
Exactness: float forms are exact on the same libm, and beyond a depth of 680 on the same first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.recurrent import lstm_integer
from tflq.kernels.families.recurrent.binding import Inputs, bind
from tflq.kernels.families.recurrent.lstm import Cell
from tflq.kernels.families.recurrent.lstm_operands import FLOAT_GATES, FORMS, SINGLE, Sizes, check
from tflq.kernels.families.recurrent.sequence import run, state_of
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """What the loop over float activations needs."""

    cell: Callable[[Inputs], Cell]
    sizes: Sizes
    time_major: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the operands and bind the cell."""
    node.check(len(node.inputs) in (20, 24), "number of inputs", expected="20 or 24", got=len(node.inputs))
    x = node.input(0)
    node.check(len(x.shape) == 3, "number of dimensions", x, expected=3, got=len(x.shape))
    time_major = bool(node.options.get("time_major", False))
    is_float = x.type == TensorType.FLOAT32
    sizes = check(node, SINGLE, x.shape[1 if time_major else 0], x.shape[2], diagonal=is_float)
    shapes, updates = ((*x.shape[:2], sizes.outputs),), (SINGLE.output_state, SINGLE.cell_state)
    if not is_float:
        integer = lstm_integer.bind(node, arithmetic, sizes, time_major=time_major)
        return Prepared(shapes, integer, evaluate_integer, updates)
    rows, cache = sizes.batches if time_major else 1, arithmetic.first_level_cache
    cell = bind(node, SINGLE.weights, lambda inputs: Cell.of(node, SINGLE, sizes, inputs, rows=rows, cache=cache))
    data = OpData(cell, sizes, time_major)
    return Prepared(shapes, data, evaluate, updates)


def evaluate(data: OpData, *inputs: Array | None) -> tuple[Array, Array, Array]:
    """Source: lstm_eval EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[SINGLE.output_state], data.sizes.outputs)
    memory = state_of(inputs[SINGLE.cell_state], data.sizes.cells)
    out = np.empty((*x.shape[:2], data.sizes.outputs), np.float32)
    run(data.cell(inputs), x, None, (hidden, memory), out, time_major=data.time_major)
    return out, hidden, memory


def evaluate_integer(data: lstm_integer.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16."""
    return lstm_integer.run(data, inputs[0], inputs[SINGLE.output_state], inputs[SINGLE.cell_state])


KERNELS = (
    *(Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", form, prepare, (1, 4), exactness=FLOAT_GATES) for form in FORMS[:2]),
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", FORMS[2], prepare, (1, 4)),
)
