"""UNIDIRECTIONAL_SEQUENCE_LSTM of TensorFlow Lite Micro, quantized: sigmoid and tanh from the published table.

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

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.pieces import matmul
from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.families.contraction import stage_of
from tflq.engine.kernels.families.recurrent.lstm_operands import CELL, FORMS, SINGLE, Sizes, check, types
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.engine.kernels.lstm import reference
from tflq.engine.kernels.validity import cmsis_nn, micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.scaling import check_log2
from tflq.engine.numerics.sigmoid_int16 import logistic_int16_into, tanh_int16_into
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.typing import Array

_INT16 = np.dtype(np.int16)

#: Scale of what goes into sigmoid and tanh, and of what comes out.
_ENTERS, _LEAVES = np.float32(2.0**-12), np.float32(2.0**-15)


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """Both products of one gate: codes (R, depth) -> Q3.12, each saturated to int16."""

    weights: tuple[Array, Array]  # int64, (depth, C), of input and output state
    biases: tuple[Array, Array]  # LSB of accumulator, the zero points' share included
    pipelines: tuple[OutputPipeline, OutputPipeline]

    def __call__(self, side: int, codes: Array) -> Array:
        """Return one product's codes. Overflow: 32-bit accumulators wrap in the stage."""
        return self.pipelines[side](matmul(codes.astype(np.int64), self.weights[side]) + self.biases[side])


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a step."""

    gates: tuple[Gate, Gate, Gate, Gate]
    keep: OutputPipeline  # forget gate times cell -> LSB of cell
    admit: OutputPipeline  # input gate times cell gate -> LSB of cell
    hide: OutputPipeline  # output gate times tanh(cell) -> codes of output state
    tanh: tuple[int, int]  # multiplier and shift of the cell before its tanh
    clip: int  # LSB of cell; 0: none
    time_major: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute all multipliers in float64."""
    x, state, cell = node.input(0), node.input(SINGLE.output_state), node.input(SINGLE.cell_state)
    node.check(len(x.shape) == 3, "number of dimensions", x, expected=3, got=len(x.shape))
    time_major = bool(node.options.get("time_major", False))
    sizes = check(node, SINGLE, x.shape[1 if time_major else 0], x.shape[2])
    _check_plain(node, sizes)
    exponent, _ = check_log2(cell.scale)
    clip = float(np.float32(node.options.get("cell_clip", 0.0)))
    data = OpData(
        gates=tuple(_gate(node, arithmetic, g, x, state) for g in range(4)),  # type: ignore[arg-type]
        keep=_between(arithmetic, _LEAVES, cell.scale, cell.scale, _INT16, 0),
        admit=_between(arithmetic, _LEAVES, _LEAVES, cell.scale, _INT16, 0),
        hide=_between(arithmetic, _LEAVES, _LEAVES, state.scale, np.dtype(x.type.label), state.zero_point),
        tanh=(0, exponent + 12) if exponent >= -12 else (3, -exponent - 12),
        clip=int(min(max(clip / float(cell.scale), -32768.0), 32767.0)) if clip > 0 else 0,
        time_major=time_major,
    )
    return Prepared(((*x.shape[:2], sizes.cells),), data, evaluate, (SINGLE.output_state, SINGLE.cell_state))


def _check_plain(node: Node, sizes: Sizes) -> None:
    """Source: LstmTensors::ValidateTensorStatus."""
    node.check(not sizes.cifg, "every gate needs its own weights")
    for position in (*SINGLE.peepholes, SINGLE.projection, SINGLE.projection_bias, *SINGLE.norms):
        operand = node.optional(position)
        node.check(operand is None, "peepholes, projections and layer norms are not supported", operand)


def _gate(node: Node, arithmetic: Arithmetic, gate: int, x: Operand, state: Operand) -> Gate:
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
    return Gate((w0, w1), (b0, b1), (p0, p1))


def _between(
    arithmetic: Arithmetic, a: np.float32, b: np.float32, y: np.float32, dtype: np.dtype[np.generic], zero_point: int
) -> OutputPipeline:
    real = np.float64(a) * np.float64(b) / np.float64(y)
    return OutputPipeline(arithmetic.requantize(real), ZeroPoint(zero_point), type_range(dtype), dtype)


def evaluate(data: OpData, *inputs: Array) -> tuple[Array, Array, Array]:
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


def _step(data: OpData, codes: Array, state: Array, cell: Array) -> tuple[Array, Array]:
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
_FLOAT = tuple(replace(row, exactness=close("float sums are added in another order")) for row in reference.SEQUENCE[:1])

MICRO = valid(
    micro(),
    *_FLOAT,
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", FORMS[2], prepare, (1, 3)),
    Kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", types("int16", "int8", "int16", "int64", "int16", "int16"), prepare, (1, 4)),
)

_INT32 = np.dtype(np.int32)


def prepare_unsaturated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like TensorFlow Lite Micro; recurrent products and the input gate's share stay in 32 bits."""
    prepared = prepare(node, arithmetic)
    data: OpData = prepared.data
    input_gate, forget, cell, output_gate = map(_unsaturated_gate, data.gates)
    ours = replace(data, gates=(input_gate, forget, cell, output_gate), admit=_unsaturated(data.admit))
    return replace(prepared, data=ours)


def _unsaturated_gate(gate: Gate) -> Gate:
    from_input, recurrent = gate.pipelines
    return replace(gate, pipelines=(from_input, _unsaturated(recurrent)))


def _unsaturated(pipeline: OutputPipeline) -> OutputPipeline:
    return replace(pipeline, clamp=type_range(_INT32), dtype=_INT32)


KERNELS = (
    *MICRO,
    *valid(cmsis_nn(), *(replace(row, prepare=prepare_unsaturated) for row in MICRO if not row.signature.is_float)),
)
