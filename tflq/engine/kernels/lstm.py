"""LSTM: one step of a cell, and over sequences in one or both directions.

BIDIRECTIONAL_SEQUENCE_LSTM: two LSTM cells over a sequence, one from each end.

| operand                   | position, forward   | backward            | shape         | types                   |
|---------------------------|---------------------|---------------------|---------------|-------------------------|
| x                         | 0                   |                     | N, T, I       | float32                 |
| input weights             | 1 .. 4              | 18 .. 21            | C, I          | float32; int8, uint8    |
| recurrent weights         | 5 .. 8              | 22 .. 25            | C, O          | as the input weights    |
| peepholes                 | 9, 10, 11           | 26, 27, 28          | C             | as the input weights    |
| biases                    | 12 .. 15            | 29 .. 32            | C             | float32                 |
| projection                | 16, 17              | 33, 34              | O, C; O       | as the weights; float32 |
| output state, cell state  | 35, 36              | 37, 38              | N * O; N * C  | float32, variable       |
| auxiliary x; weights      | 39; 40 .. 43        | 39; 44 .. 47        | N, T, A; C, A | float32; as the weights |
| y                         | output 0            | output 1            | N, T, O       | float32                 |

x and y are T, N, . with time_major. Both directions have as many cells and as many outputs. Gates come in the order
input, forget, cell, output (peepholes: no cell). What may be absent: as UNIDIRECTIONAL_SEQUENCE_LSTM. 8-bit weights are
per tensor; uint8 is read as int8. An auxiliary x without weights is what the backward cell reads instead of x.
Options: time_major, merge_outputs (one output, both O last), cell_clip, proj_clip, fused_activation_function,
asymmetric_quantize_inputs.
Refused: merge_outputs of several batches that come first, for which the source walks beyond its states.
Source: LiteRT 2.3 bidirectional_sequence_lstm.cc; lstm_eval.cc EvalFloat, EvalHybrid.
Exactness: exact on the same libm, and beyond a depth of 680 on the same first-level cache.

LSTM: one step of an LSTM cell. UNIDIRECTIONAL_SEQUENCE_LSTM: over a sequence.

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
8-bit activations of LSTM with twelve intermediates instead of five have 8-bit products: lstm_others.py.

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

LSTMs of earlier releases, in both resolvers.

LSTM, kernel type BASIC on 8 bits: up to 2.14 gemmlowp makes the product of all gates and rounds half away at the end.
The matrix-vector kernel makes that of one row on AArch64, where ruy makes the others after 2.14, and in builds with the
NEON code by way of SSE: up to 2.12, and in both resolvers of r1.15.
LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM on int8 up to 2.11: the hidden state's zero point is subtracted, not added.
Cells with 8-bit gates were not examined: their rows are today's. Float results up to 2.14 are not claimed.
Source: LiteRT 2.3, TensorFlow r1.15 to 2.14 lstm.cc basic; optimized_ops.h LstmCell; cpu_backend_gemm.h Gemm.
TensorFlow 2.11 portable_tensor_utils.cc PortableCwiseMul.

UNIDIRECTIONAL_SEQUENCE_LSTM of TensorFlow Lite Micro, quantized: sigmoid and tanh from the published table.

Float activations are the reference's, and only close to this runtime.

| operand           | position   | shape   | types                                                  |
|-------------------|------------|---------|--------------------------------------------------------|
| x                 | 0          | N, T, I | int8, int16                                            |
| input weights     | 1, 2, 3, 4 | C, I    | int8, symmetric                                        |
| recurrent weights | 5, 6, 7, 8 | C, C    | int8, symmetric                                        |
| biases            | 12 .. 15   | C       | int32 (int16 activations: int64)                       |
| output state      | 18         | N * C   | as x; variable                                         |
| cell state        | 19         | N * C   | int16, scale a power of two; variable                  |
| y                 |            | N, T, C | as x                                                   |

x and y are T, N, . with time_major. Gates come in the order input, forget, cell, output; all are there. Peepholes,
projections, layer norms and intermediates take no part. All quantization is per tensor.
Source: tflite-micro (October 2026), lstm_eval_common.cc CreateGateParams, CreateInterGateMulParams,
CreateLstmCellStateInfo; lstm_eval.h CalculateLstmGate, UpdateLstmCell, UpdateLstmHidden.

CMSIS-NN does not saturate the second of two addends before their sum, so that bits differ only if a product alone
exceeds 16 bits.
Source: CMSIS-NN 99f736a, arm_nn_lstm_calculate_gate_s8_s16, arm_nn_vec_mat_mul_result_acc_s8_s16,
arm_nn_vec_mat_mul_result_acc_s16, arm_elementwise_mul_acc_s16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.pieces import matmul
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.contraction import Scaling, gemmlowp, ruy, stage_of
from tflq.engine.kernels.families.recurrent import lstm_integers, lstm_others
from tflq.engine.kernels.families.recurrent.lstm_floats import Cell
from tflq.engine.kernels.families.recurrent.lstm_operands import (
    BACKWARD,
    CELL,
    FLOAT_GATES,
    FLOATS,
    FORGET,
    FORMS,
    FORWARD,
    INTEGERS,
    SINGLE,
    LstmSizes,
    check,
    types,
)
from tflq.engine.kernels.families.recurrent.lstm_others import WEIGHTS, prepare_with
from tflq.engine.kernels.families.recurrent.parts import Inputs, bind, floats_unclaimed, run, state_of
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepare, Prepared, close, valid
from tflq.engine.kernels.validity import cmsis_nn, micro, tf1, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.multiplier import check_log2
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.engine.numerics.tables import logistic_int16_into, tanh_int16_into
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

_AUX = 39
_STATES = (FORWARD.output_state, FORWARD.cell_state, BACKWARD.output_state, BACKWARD.cell_state)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the loops over both directions."""

    cells: Callable[[Inputs], tuple[Cell, Cell]]
    sizes: tuple[LstmSizes, LstmSizes]
    time_major: bool
    merge: bool
    stacked: bool  # the auxiliary input has weights of its own


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the operands and bind both cells."""
    node.check(len(node.inputs) == 48, "number of inputs", expected=48, got=len(node.inputs))
    x = node.input(0)
    require_rank(node, x, 3)
    time_major, merge = (bool(node.options.get(name, False)) for name in ("time_major", "merge_outputs"))
    node.check(len(node.outputs) == (1 if merge else 2), "number of outputs", got=len(node.outputs))
    batches = x.shape[1 if time_major else 0]
    sizes = check(node, FORWARD, batches, x.shape[2]), check(node, BACKWARD, batches, x.shape[2])
    extents = [(s.cells, s.outputs) for s in sizes]
    node.check(extents[0] == extents[1], "cells and outputs of both directions", expected=extents[0], got=extents[1])
    stacked = _check_auxiliary(node, x, sizes)
    if merge and not time_major and batches > 1:
        raise UndefinedResultError(node.op, "merged outputs of several batches, batch first: states beyond their end")

    rows, cache = batches if time_major else 1, arithmetic.first_level_cache

    def build(inputs: Inputs) -> tuple[Cell, Cell]:
        return (
            Cell.of(node, FORWARD, sizes[0], inputs, rows=rows, cache=cache, auxiliary=stacked),
            Cell.of(node, BACKWARD, sizes[1], inputs, rows=rows, cache=cache, auxiliary=stacked),
        )

    cells = bind(node, (*FORWARD.weights, *BACKWARD.weights), build)
    data = OpData(cells, sizes, time_major, merge, stacked)
    outputs = tuple(s.outputs for s in sizes)
    shapes = tuple((*x.shape[:2], size) for size in ((sum(outputs),) if merge else outputs))
    return Prepared(shapes, data, evaluate, updates=_STATES)


def _check_auxiliary(node: Node, x: Operand, sizes: tuple[LstmSizes, LstmSizes]) -> bool:
    """Return whether the auxiliary input has weights, for all gates of both cells."""
    aux = node.optional(_AUX)
    stacked = node.optional(FORWARD.auxiliary[FORGET]) is not None
    for roles, size in zip((FORWARD, BACKWARD), sizes, strict=True):
        for gate, position in enumerate(roles.auxiliary):
            operand = node.optional(position)
            node.check((operand is not None) == (stacked and gate in size.gates), "auxiliary weights: all or none")
            if operand is not None and aux is not None:
                expected = (size.cells, aux.shape[-1])
                node.check(operand.shape == expected, "shape", operand, expected=list(expected))
    if aux is None:
        node.check(not stacked, "auxiliary weights without an auxiliary input")
        return False
    same = len(aux.shape) == 3 and aux.shape[:2] == x.shape[:2]
    node.check(same and (stacked or aux.shape == x.shape), "shape", aux, expected=list(x.shape), got=list(aux.shape))
    return stacked


def evaluate(data: OpData, *inputs: Array | None) -> tuple[Array, ...]:
    """Source: lstm_eval EvalFloat, EvalHybrid, forwards and backwards."""
    x, aux = inputs[0], inputs[_AUX]
    assert x is not None
    back = x if aux is None or data.stacked else aux
    extra = aux if data.stacked else None
    columns = [n for size in data.sizes for n in (size.outputs, size.cells)]
    states = [state_of(inputs[p], n) for p, n in zip(_STATES, columns, strict=True)]
    forward, backward = data.cells(inputs)
    outs = [np.empty((*x.shape[:2], size.outputs), np.float32) for size in data.sizes]
    run(forward, x, extra, states[:2], outs[0], time_major=data.time_major)
    run(backward, back, extra, states[2:], outs[1], time_major=data.time_major, backwards=True)
    return (np.concatenate(outs, axis=2), *states) if data.merge else (*outs, *states)


def _types(w: str) -> str:
    cell = f"{w}? {w} {w} {w} " * 2 + f"{w}? {w}? {w}? float32? float32 float32 float32 {w}? float32? "
    states = "float32 float32 float32 float32 float32? "
    return f"float32 {cell}{cell}{states}" + f"{w}? " * 8 + "-> float32 float32?"


ROWS = tuple(
    Kernel("BIDIRECTIONAL_SEQUENCE_LSTM", _types(w), prepare, (1, 3), exactness=FLOAT_GATES)
    for w in ("float32", "int8|uint8")
)


FULL, BASIC = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class CellData:
    """Constants of one cell on float activations."""

    cell: Callable[[Inputs], Cell]
    sizes: LstmSizes
    time_major: bool  # True of a step, too: it is a sequence of one


def prepare_cell(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the operands, of an LSTM those of kernel type FULL, and bind the cell."""
    x, is_step = node.input(0), node.op == "LSTM"
    if is_step:
        full = int(node.options.get("kernel_type", FULL)) == FULL
        node.check(full, "kernel_type", expected="FULL with 20 or 24 inputs")
    node.check(len(node.inputs) in (20, 24), "number of inputs", expected="20 or 24", got=len(node.inputs))
    require_rank(node, x, 2 if is_step else 3)
    time_major = is_step or bool(node.options.get("time_major", False))
    is_float = x.type == TensorType.FLOAT32
    sizes = check(node, SINGLE, x.shape[-2 if time_major else 0], x.shape[-1], diagonal=is_float and not is_step)
    shapes, updates = ((*x.shape[:-1], sizes.outputs),), (SINGLE.output_state, SINGLE.cell_state)
    if not is_float:
        if is_step and len(node.intermediates) == 12:
            return Prepared(shapes, lstm_others.bind_lstm_narrow(node, arithmetic, sizes), eval_narrow_step, updates)
        integer = lstm_integers.bind(node, arithmetic, sizes, time_major=time_major)
        return Prepared(shapes, integer, eval_integer, updates)
    rows, cache = sizes.batches if time_major else 1, arithmetic.first_level_cache
    cell = bind(node, SINGLE.weights, lambda inputs: Cell.of(node, SINGLE, sizes, inputs, rows=rows, cache=cache))
    return Prepared(shapes, CellData(cell, sizes, time_major), eval_cell, updates)


def _as_sequence(x: Array) -> Array:
    """Return the input of a sequence as it is, that of a step as a sequence of one, time first."""
    return x.reshape((1, *x.shape)[-3:])


def eval_cell(data: CellData, *inputs: Array | None) -> tuple[Array, Array, Array]:
    """Source: lstm_eval EvalFloat, EvalHybrid."""
    x = inputs[0]
    assert x is not None
    hidden = state_of(inputs[SINGLE.output_state], data.sizes.outputs)
    memory = state_of(inputs[SINGLE.cell_state], data.sizes.cells)
    out = np.empty((*x.shape[:-1], data.sizes.outputs), np.float32)
    run(data.cell(inputs), _as_sequence(x), None, (hidden, memory), _as_sequence(out), time_major=data.time_major)
    return out, hidden, memory


def eval_integer(data: lstm_integers.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16."""
    x, state, cell = inputs[0], inputs[SINGLE.output_state], inputs[SINGLE.cell_state]
    out, state, cell = lstm_integers.run(data, _as_sequence(x), state, cell)
    return out.reshape((*x.shape[:-1], data.outputs)), state, cell


def eval_narrow_step(data: lstm_others.OpData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_8."""
    state, cell = inputs[SINGLE.output_state], inputs[SINGLE.cell_state]
    out, memory = lstm_others.step(data, inputs[0], state, cell)
    return out, out.reshape(state.shape), memory


STEP = (
    *(Kernel("LSTM", form, prepare_cell, (1, 4), exactness=FLOAT_GATES) for form in FORMS),
    Kernel(
        "LSTM",
        "float32 float32 float32 float32 float32 -> float32 float32 float32 float32",
        lstm_others.prepare_float,
        (1, 4),
        exactness=FLOAT_GATES,
    ),
    Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", lstm_others.prepare_quantized, (1, 4)),
)

SEQUENCE = (
    *(
        Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", form, prepare_cell, (1, 4), exactness=FLOAT_GATES)
        for form in FORMS
        if form != INTEGERS
    ),
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", INTEGERS, prepare_cell, (1, 4)),
)

_REFERENCE = (*ROWS, *STEP, *SEQUENCE)


def prepare_half_away(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with the gates requantized by the profile's own stage."""
    return prepare_with(node, arithmetic.requantize)


def prepare_negated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like later releases, with the other sign of the zero point; if a projection follows, it is the same."""
    later = prepare_cell(node, arithmetic)
    data = later.data
    if not isinstance(data, lstm_integers.OpData) or data.projection is not None:
        return later
    return replace(later, data=replace(data, hidden_zero_point=ZeroPoint(-data.hidden_zero_point)))


def by(scaling: Scaling) -> Prepare:
    """Return a prepare that scales gates by the shape of their product."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        weights, x = node.input(WEIGHTS), node.input(0)
        node.check(len(weights.shape) == 2 and len(x.shape) >= 1, "number of dimensions", weights, expected=2)
        return prepare_with(node, scaling(arithmetic, weights.shape[0], weights.shape[1], x.shape[0]))

    return prepare


def _basic(prepare: Prepare, last_version: int) -> Kernel:
    types = "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16"
    return Kernel("LSTM", types, prepare, (1, last_version))


_BY_GEMMLOWP = by(gemmlowp)
_EARLIER = (
    *valid(tflite("litert-1.0", cpu="arm64"), _basic(by(ruy), 4)),
    *valid(tflite(until="tflite-2.14"), _basic(prepare_half_away, 3), *floats_unclaimed(STEP, SEQUENCE, ROWS)),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), _basic(_BY_GEMMLOWP, 4)),
    *valid(tflite(until="tflite-2.12", cpu="x86-64", vectors=True), _basic(_BY_GEMMLOWP, 3)),
    *valid(
        tflite(until="tflite-2.11"),
        *(
            replace(row, prepare=prepare_negated)
            for row in (*STEP, *SEQUENCE)
            if row.signature.starts_with(TensorType.INT8)
        ),
    ),
    *valid(tf1(), _basic(_BY_GEMMLOWP, 3)),
)


_INT16 = np.dtype(np.int16)

#: Scale of what goes into sigmoid and tanh, and of what comes out.
_ENTERS, _LEAVES = np.float32(2.0**-12), np.float32(2.0**-15)


@dataclass(frozen=True, slots=True, eq=False)
class MicroGate:
    """Both products of one gate: codes (R, depth) -> Q3.12, each saturated to int16."""

    weights: tuple[Array, Array]  # int64, (depth, C), of input and output state
    biases: tuple[Array, Array]  # LSB of accumulator, the zero points' share included
    pipelines: tuple[OutputPipeline, OutputPipeline]

    def __call__(self, side: int, codes: Array) -> Array:
        """Return one product's codes. Overflow: 32-bit accumulators wrap in the stage."""
        return self.pipelines[side](matmul(codes.astype(np.int64), self.weights[side]) + self.biases[side])


@dataclass(frozen=True, slots=True, eq=False)
class MicroData:
    """Constants of a step."""

    gates: tuple[MicroGate, MicroGate, MicroGate, MicroGate]
    keep: OutputPipeline  # forget gate times cell -> LSB of cell
    admit: OutputPipeline  # input gate times cell gate -> LSB of cell
    hide: OutputPipeline  # output gate times tanh(cell) -> codes of output state
    tanh: tuple[int, int]  # multiplier and shift of the cell before its tanh
    clip: int  # LSB of cell; 0: none
    time_major: bool


def prepare_micro(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute all multipliers in float64."""
    x, state, cell = node.input(0), node.input(SINGLE.output_state), node.input(SINGLE.cell_state)
    require_rank(node, x, 3)
    time_major = bool(node.options.get("time_major", False))
    sizes = check(node, SINGLE, x.shape[1 if time_major else 0], x.shape[2])
    _check_plain(node, sizes)
    exponent, _ = check_log2(cell.scale)
    clip = float(np.float32(node.options.get("cell_clip", 0.0)))
    data = MicroData(
        gates=tuple(_gate(node, arithmetic, g, x, state) for g in range(4)),  # type: ignore[arg-type]
        keep=_between(arithmetic, _LEAVES, cell.scale, cell.scale, _INT16, 0),
        admit=_between(arithmetic, _LEAVES, _LEAVES, cell.scale, _INT16, 0),
        hide=_between(arithmetic, _LEAVES, _LEAVES, state.scale, np.dtype(x.type.label), state.zero_point),
        tanh=(0, exponent + 12) if exponent >= -12 else (3, -exponent - 12),
        clip=int(min(max(clip / float(cell.scale), -32768.0), 32767.0)) if clip > 0 else 0,
        time_major=time_major,
    )
    return Prepared(((*x.shape[:2], sizes.cells),), data, evaluate_micro, (SINGLE.output_state, SINGLE.cell_state))


def _check_plain(node: Node, sizes: LstmSizes) -> None:
    """Source: LstmTensors::ValidateTensorStatus."""
    node.check(not sizes.cifg, "every gate needs its own weights")
    for position in (*SINGLE.peepholes, SINGLE.projection, SINGLE.projection_bias, *SINGLE.norms):
        operand = node.optional(position)
        node.check(operand is None, "peepholes, projections and layer norms are not supported", operand)


def _gate(node: Node, arithmetic: Arithmetic, gate: int, x: Operand, state: Operand) -> MicroGate:
    accumulator = np.dtype(np.int64 if x.type.label == "int16" else np.int32)
    products: list[tuple[Array, Array, OutputPipeline]] = []
    sides = ((x, SINGLE.inputs[gate], SINGLE.biases[gate]), (state, SINGLE.recurrent[gate], None))
    for operand, position, bias in sides:
        w = node.input(position)
        real = np.atleast_1d(np.float64(operand.scale) * np.float64(w.scale) / np.float64(_ENTERS))
        weights = node.constant(position).astype(np.int64).T
        added = np.zeros(weights.shape[1], np.int64) if bias is None else node.constant(bias).astype(np.int64)
        pipeline = OutputPipeline(stage_of(arithmetic, accumulator, real), ZeroPoint(0), type_range(_INT16), _INT16)
        products.append((weights, added - operand.zero_point * weights.sum(axis=0), pipeline))
    (w0, b0, p0), (w1, b1, p1) = products
    return MicroGate((w0, w1), (b0, b1), (p0, p1))


def _between(
    arithmetic: Arithmetic, a: np.float32, b: np.float32, y: np.float32, dtype: np.dtype[np.generic], zero_point: int
) -> OutputPipeline:
    real = np.float64(a) * np.float64(b) / np.float64(y)
    return OutputPipeline(arithmetic.requantize(real), ZeroPoint(zero_point), type_range(dtype), dtype)


def evaluate_micro(data: MicroData, *inputs: Array) -> tuple[Array, Array, Array]:
    """Source: EvalLstm. Outputs, then the new output state and cell state; `x` is (N, T, I) or (T, N, I)."""
    x, first_state, first_cell = inputs[0], inputs[SINGLE.output_state], inputs[SINGLE.cell_state]
    steps = x if data.time_major else x.transpose(1, 0, 2)
    state = first_state.reshape(steps.shape[1], -1)
    cell = first_cell.reshape(steps.shape[1], -1)
    outputs = np.empty((len(steps), *state.shape), state.dtype)
    for t, codes in enumerate(steps):
        state, cell = _step(data, codes, state, cell)
        outputs[t] = state
    arranged = outputs if data.time_major else np.ascontiguousarray(outputs.transpose(1, 0, 2))
    return arranged, state.reshape(first_state.shape).copy(), cell.reshape(first_cell.shape).copy()


def _step(data: MicroData, codes: Array, state: Array, cell: Array) -> tuple[Array, Array]:
    """Return the new output state and cell state. Sums saturate to int16; the clip follows."""
    ready = []
    for number, gate in enumerate(data.gates):
        total = _saturated_sum(gate(0, codes), gate(1, state))
        ready.append(_tanh(total, 0, 0) if number == CELL else _logistic(total))
    input_gate, forget, update, output_gate = (gate.astype(np.int32) for gate in ready)
    cell = _saturated_sum(data.keep(forget * cell), data.admit(input_gate * update))
    if data.clip > 0:
        cell = np.maximum(np.minimum(cell, np.int16(data.clip)), np.int16(-data.clip))
    return data.hide(output_gate * _tanh(cell, *data.tanh)), cell


def _saturated_sum(a: Array, b: Array) -> Array:
    return np.clip(a.astype(np.int32) + b, *type_range(_INT16)).astype(np.int16)


def _logistic(x: Array) -> Array:
    out = np.empty(x.shape, np.int16)
    logistic_int16_into(np.ascontiguousarray(x).reshape(-1), 0, 0, out.reshape(-1))
    return out


def _tanh(x: Array, multiplier: int, shift: int) -> Array:
    out = np.empty(x.shape, np.int16)
    tanh_int16_into(np.ascontiguousarray(x).reshape(-1), multiplier, shift, out.reshape(-1))
    return out


#: Float activations: the reference's kernel, which is near.
_FLOAT = tuple(
    replace(row, exactness=close("float sums are added in another order")) for row in SEQUENCE if row.types == FLOATS
)

MICRO = valid(
    micro(),
    *_FLOAT,
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", INTEGERS, prepare_micro, (1, 3)),
    Kernel(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        types("int16", "int8", "int16", "int64", "int16", "int16"),
        prepare_micro,
        (1, 4),
    ),
)

_INT32 = np.dtype(np.int32)


def prepare_unsaturated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like TensorFlow Lite Micro; recurrent products and the input gate's share stay in 32 bits."""
    prepared = prepare_micro(node, arithmetic)
    data: MicroData = prepared.data
    input_gate, forget, cell, output_gate = map(_unsaturated_gate, data.gates)
    ours = replace(data, gates=(input_gate, forget, cell, output_gate), admit=_unsaturated(data.admit))
    return replace(prepared, data=ours)


def _unsaturated_gate(gate: MicroGate) -> MicroGate:
    from_input, recurrent = gate.pipelines
    return replace(gate, pipelines=(from_input, _unsaturated(recurrent)))


def _unsaturated(pipeline: OutputPipeline) -> OutputPipeline:
    return replace(pipeline, clamp=type_range(_INT32), dtype=_INT32)


_MICRO = (
    *MICRO,
    *valid(cmsis_nn(), *(replace(row, prepare=prepare_unsaturated) for row in MICRO if not row.signature.is_float)),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_EARLIER, *_MICRO)
