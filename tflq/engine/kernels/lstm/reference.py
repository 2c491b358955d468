"""LSTM: one step of an LSTM cell. UNIDIRECTIONAL_SEQUENCE_LSTM: over a sequence. BIDIRECTIONAL_: bidirectional.py.

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

x and y are T, N, . with time_major; those of LSTM, kernel type FULL, lack T. Gates come in the order input, forget,
cell, output (peepholes: no cell). Without positions 1 and 5 the input gate is 1 - forget gate (CIFG). Peepholes,
projection and layer norms may be absent. Recurrent weights of one dimension are a diagonal, float32 also if other
weights have 8 bits. uint8 weights are read as int8. All quantization is per tensor.
Options: time_major, cell_clip, proj_clip, fused_activation_function (float activations), asymmetric_quantize_inputs.
8-bit activations of LSTM with twelve intermediates instead of five have 8-bit products: lstm_narrow.py.

LSTM, kernel type BASIC: gates come from one product, in the order input, cell, forget, output.

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

Source: LiteRT 2.3 lstm.cc full, basic; unidirectional_sequence_lstm.cc; lstm_eval.cc EvalFloat, EvalHybrid,
EvalInteger8x8_16; optimized_ops.h LstmCell.
Exactness: float forms are exact on the same libm, and beyond a depth of 680 on the same first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.recurrent import lstm_basic, lstm_integer, lstm_narrow
from tflq.engine.kernels.families.recurrent.binding import Inputs, bind
from tflq.engine.kernels.families.recurrent.lstm import Cell
from tflq.engine.kernels.families.recurrent.lstm_operands import FLOAT_GATES, FORMS, SINGLE, Sizes, check
from tflq.engine.kernels.families.recurrent.sequence import run, state_of
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.lstm import bidirectional
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType
from tflq.typing import Array

FULL, BASIC = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class StepData:
    """Constants of a step on float activations."""

    cell: Callable[[Inputs], Cell]
    sizes: Sizes


def prepare_step(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the operands of kernel type FULL and bind the cell."""
    node.check(int(node.options.get("kernel_type", FULL)) == FULL, "kernel_type", expected="FULL with 20 or 24 inputs")
    node.check(len(node.inputs) in (20, 24), "number of inputs", expected="20 or 24", got=len(node.inputs))
    x = node.input(0)
    node.check(len(x.shape) == 2, "number of dimensions", x, expected=2, got=len(x.shape))
    sizes = check(node, SINGLE, *x.shape)
    shapes, updates = ((x.shape[0], sizes.outputs),), (SINGLE.output_state, SINGLE.cell_state)
    if x.type == TensorType.INT8:
        if len(node.intermediates) == 12:
            return Prepared(shapes, lstm_narrow.bind(node, arithmetic, sizes), eval_narrow_step, updates)
        return Prepared(shapes, lstm_integer.bind(node, arithmetic, sizes, time_major=True), eval_integer_step, updates)
    rows, cache = sizes.batches, arithmetic.first_level_cache
    cell = bind(node, SINGLE.weights, lambda inputs: Cell.of(node, SINGLE, sizes, inputs, rows=rows, cache=cache))
    return Prepared(shapes, StepData(cell, sizes), eval_step, updates)


def eval_step(data: StepData, *inputs: Array | None) -> tuple[Array, Array, Array]:
    """Source: lstm_eval EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[SINGLE.output_state], data.sizes.outputs)
    memory = state_of(inputs[SINGLE.cell_state], data.sizes.cells)
    out = np.empty((1, len(x), data.sizes.outputs), np.float32)
    run(data.cell(inputs), x[None], None, (hidden, memory), out, time_major=True)
    return hidden, hidden, memory


def eval_integer_step(data: lstm_integer.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16: a sequence of one."""
    out, state, cell = lstm_integer.run(data, inputs[0][None], inputs[SINGLE.output_state], inputs[SINGLE.cell_state])
    return out[0], state, cell


def eval_narrow_step(data: lstm_narrow.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_8."""
    state, cell = inputs[SINGLE.output_state], inputs[SINGLE.cell_state]
    out, memory = lstm_narrow.step(data, inputs[0], state, cell)
    return out, out.reshape(state.shape), memory


STEP = (
    *(Kernel("LSTM", form, prepare_step, (1, 4), exactness=FLOAT_GATES) for form in FORMS),
    Kernel(
        "LSTM",
        "float32 float32 float32 float32 float32 -> float32 float32 float32 float32",
        lstm_basic.prepare_float,
        (1, 4),
        exactness=FLOAT_GATES,
    ),
    Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", lstm_basic.prepare_quantized, (1, 4)),
)


@dataclass(frozen=True, slots=True, eq=False)
class SequenceData:
    """Constants of the loop over float activations."""

    cell: Callable[[Inputs], Cell]
    sizes: Sizes
    time_major: bool


def prepare_sequence(node: Node, arithmetic: Arithmetic) -> Prepared:
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
        return Prepared(shapes, integer, eval_integer_sequence, updates)
    rows, cache = sizes.batches if time_major else 1, arithmetic.first_level_cache
    cell = bind(node, SINGLE.weights, lambda inputs: Cell.of(node, SINGLE, sizes, inputs, rows=rows, cache=cache))
    data = SequenceData(cell, sizes, time_major)
    return Prepared(shapes, data, eval_sequence, updates)


def eval_sequence(data: SequenceData, *inputs: Array | None) -> tuple[Array, Array, Array]:
    """Source: lstm_eval EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[SINGLE.output_state], data.sizes.outputs)
    memory = state_of(inputs[SINGLE.cell_state], data.sizes.cells)
    out = np.empty((*x.shape[:2], data.sizes.outputs), np.float32)
    run(data.cell(inputs), x, None, (hidden, memory), out, time_major=data.time_major)
    return out, hidden, memory


def eval_integer_sequence(data: lstm_integer.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16."""
    return lstm_integer.run(data, inputs[0], inputs[SINGLE.output_state], inputs[SINGLE.cell_state])


SEQUENCE = (
    *(
        Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", form, prepare_sequence, (1, 4), exactness=FLOAT_GATES)
        for form in FORMS[:2]
    ),
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", FORMS[2], prepare_sequence, (1, 4)),
)

KERNELS = (*bidirectional.ROWS, *STEP, *SEQUENCE)
