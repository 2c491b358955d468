"""LSTM: one step of an LSTM cell.

Kernel type FULL: operands as UNIDIRECTIONAL_SEQUENCE_LSTM, but x is (N, I) and y (N, O).

Kernel type BASIC: gates come from one product, in the order input, cell, forget, output.

| operand              | shape      | float form | 8-bit form                                                     |
|----------------------|------------|------------|----------------------------------------------------------------|
| x                    | N, I       | float32    | uint8, scale 1/128, zero point 128                             |
| previous activation  | N, C       | float32    | uint8; both become the outputs of their kind after a step      |
| weights              | 4 C, I + C | float32    | uint8, per tensor                                              |
| biases               | 4 C        | float32    | int32, scale of the products                                   |
| previous state       | N, C       | float32    | int16                                                          |
| activation           | N, C       | float32    | uint8                                                          |
| state                | N, C       | float32    | int16, scale 2**-11                                            |
| x and activation     | N, I + C   | float32    | uint8                                                          |
| gates before their f | N, 4 C     | float32    | int16                                                          |

Options: kernel_type, cell_clip, proj_clip, fused_activation_function (FULL), asymmetric_quantize_inputs (FULL).
8-bit activations of kernel type FULL with twelve intermediates instead of five have 8-bit products: lstm_narrow.py.
Source: LiteRT 2.3 lstm.cc full, basic; lstm_eval.cc; optimized_ops.h LstmCell.
Exactness: float forms are exact on the same libm, and beyond a depth of 680 on the same first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.recurrent import lstm_basic, lstm_integer, lstm_narrow
from tflq.kernels.families.recurrent.binding import Inputs, bind
from tflq.kernels.families.recurrent.lstm import Cell
from tflq.kernels.families.recurrent.lstm_operands import FLOAT_GATES, FORMS, SINGLE, Sizes, check
from tflq.kernels.families.recurrent.sequence import run, state_of
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

FULL, BASIC = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """What a step on float activations needs."""

    cell: Callable[[Inputs], Cell]
    sizes: Sizes


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """FULL: check the operands and bind the cell."""
    node.check(int(node.options.get("kernel_type", FULL)) == FULL, "kernel_type", expected="FULL with 20 or 24 inputs")
    node.check(len(node.inputs) in (20, 24), "number of inputs", expected="20 or 24", got=len(node.inputs))
    x = node.input(0)
    node.check(len(x.shape) == 2, "number of dimensions", x, expected=2, got=len(x.shape))
    sizes = check(node, SINGLE, *x.shape)
    shapes, updates = ((x.shape[0], sizes.outputs),), (SINGLE.output_state, SINGLE.cell_state)
    if x.type == TensorType.INT8:
        if len(node.intermediates) == 12:
            return Prepared(shapes, lstm_narrow.bind(node, arithmetic, sizes), evaluate_narrow, updates)
        return Prepared(shapes, lstm_integer.bind(node, arithmetic, sizes, time_major=True), evaluate_integer, updates)
    rows, cache = sizes.batches, arithmetic.first_level_cache
    cell = bind(node, SINGLE.weights, lambda inputs: Cell.of(node, SINGLE, sizes, inputs, rows=rows, cache=cache))
    return Prepared(shapes, OpData(cell, sizes), evaluate, updates)


def evaluate(data: OpData, *inputs: Array | None) -> tuple[Array, Array, Array]:
    """Source: lstm_eval EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[SINGLE.output_state], data.sizes.outputs)
    memory = state_of(inputs[SINGLE.cell_state], data.sizes.cells)
    out = np.empty((1, len(x), data.sizes.outputs), np.float32)
    run(data.cell(inputs), x[None], None, (hidden, memory), out, time_major=True)
    return hidden, hidden, memory


def evaluate_integer(data: lstm_integer.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16: a sequence of one."""
    out, state, cell = lstm_integer.run(data, inputs[0][None], inputs[SINGLE.output_state], inputs[SINGLE.cell_state])
    return out[0], state, cell


def evaluate_narrow(data: lstm_narrow.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_8."""
    state, cell = inputs[SINGLE.output_state], inputs[SINGLE.cell_state]
    out, memory = lstm_narrow.step(data, inputs[0], state, cell)
    return out, out.reshape(state.shape), memory


KERNELS = (
    *(Kernel("LSTM", form, prepare, (1, 4), exactness=FLOAT_GATES) for form in FORMS),
    Kernel(
        "LSTM",
        "float32 float32 float32 float32 float32 -> float32 float32 float32 float32",
        lstm_basic.prepare_float,
        (1, 4),
        exactness=FLOAT_GATES,
    ),
    Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", lstm_basic.prepare_quantized, (1, 4)),
)
