"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN: plain recurrent cells, for a step or over a sequence.

| operand           | RNN    | UNIDIRECTIONAL_        | BIDIRECTIONAL_                   | types                |
|-------------------|--------|------------------------|----------------------------------|----------------------|
| x                 | (B, I) | (B, T, I) or (T, B, I) | as UNIDIRECTIONAL_               | float32              |
| weights           | (U, I) | (U, I)                 | of each cell; U and V units      | float32; int8, uint8 |
| recurrent weights | (U, U) | (U, U)                 | of each cell                     | as weights           |
| bias              | (U)    | (U)                    | of each cell                     | float32              |
| hidden state      | (B, U) | (B, U)                 | of each cell                     | float32, variable    |
| auxiliary x       |        |                        | as x, A last; optional           | float32              |
| auxiliary weights |        |                        | (U, A), (V, A); optional         | as weights           |
| y                 | (B, U) | as x, U last           | U last; backward: V last         | float32              |

8-bit weights are per tensor, and uint8 is read as int8. Options: time_major (sequences), fused_activation_function,
asymmetric_quantize_inputs (8-bit weights), merge_outputs (BIDIRECTIONAL_: one output, U + V last).
An auxiliary x without weights is what the backward cell reads instead of x.
Faults of the source, kept: with the batch first, that auxiliary x is not read at all; 8-bit weights with time first run
the whole sequence T times over; if A is not I, the auxiliary x is read at strides of I (except for float weights with
the batch first). With 8-bit weights, symmetric quantization, merged outputs, time first and several batches it crashes:
refused. Float results up to 2.14 are not claimed.
Source: LiteRT 2.3 basic_rnn.cc; unidirectional_sequence_rnn.cc; bidirectional_sequence_rnn.cc; kernel_utils.cc
RnnBatchStep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.recurrent.parts import Inputs, bind, floats_unclaimed, function_of
from tflq.engine.kernels.families.recurrent.rnn import RnnCell, check_cell, is_asymmetric
from tflq.engine.kernels.kernel import Call, Form, Kernel, Node, Operand, Prepared, updating, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

_CELL = (1, 2, 3)
_STATE = 4


@dataclass(frozen=True, slots=True, eq=False)
class CellData:
    """Constants of one cell."""

    cell: Callable[[Inputs], RnnCell]
    units: int
    time_major: bool  # True of a step, too: it is a sequence of one


def prepare_cell(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the shapes and bind the cell."""
    x, is_step = node.input(0), node.op == "RNN"
    require_rank(node, x, 2 if is_step else 3)
    time_major = is_step or bool(node.options.get("time_major", False))
    units = check_cell(node, _CELL, node.input(_STATE), x.shape[-2 if time_major else 0], x.shape[-1])
    activation = function_of(node)
    data = CellData(bind(node, _CELL, lambda inputs: RnnCell.of(node, inputs, _CELL, activation)), units, time_major)
    return Prepared(((*x.shape[:-1], units),), data, eval_cell, updates=(_STATE,))


def _form(data: CellData, *inputs: Array | None) -> list[Form]:
    x = inputs[0]
    assert x is not None
    return [((*x.shape[:-1], data.units), np.dtype(np.float32))]


@updating(_form, _STATE)
def eval_cell(data: CellData, outs: Sequence[Array], *inputs: Array | None) -> Call:
    """Source: rnn::EvalFloat, EvalHybrid; unidirectional_sequence_rnn EvalFloat, EvalHybrid."""
    x, hidden = inputs[0], inputs[_STATE]
    assert x is not None
    assert hidden is not None
    moments, out = (a.reshape((1, *a.shape)[-3:]) for a in (np.ascontiguousarray(x), outs[0]))

    def call() -> None:
        data.cell(inputs).run(moments, None, hidden, out, time_major=data.time_major, backwards=False, rounds=1)

    return call


ONE = tuple(
    Kernel(op, f"float32 {w} {w} float32 float32 -> float32", prepare_cell, (1, 3))
    for op in ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
    for w in ("float32", "int8|uint8")
)

_FORWARD, _FORWARD_STATE, _FORWARD_AUX = (1, 2, 3), 4, 10
_BACKWARD, _BACKWARD_STATE, _BACKWARD_AUX = (5, 6, 7), 8, 11
_AUX = 9


@dataclass(frozen=True, slots=True, eq=False)
class BothData:
    """Constants of the loops over both directions."""

    cells: Callable[[Inputs], tuple[RnnCell, RnnCell]]
    units: tuple[int, int]
    time_major: bool
    merge: bool
    rounds: int  # how often the sequence is run
    aux: bool  # whether the auxiliary input goes to the auxiliary weights
    aux_stride: int  # elements between its moments
    crossed: bool  # whether it is the backward cell's input


def prepare_both(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the shapes and bind both cells."""
    node.check(len(node.inputs) == 12, "number of inputs", expected=12, got=len(node.inputs))
    x, aux = node.input(0), node.optional(_AUX)
    require_rank(node, x, 3)
    time_major = bool(node.options.get("time_major", False))
    batch, depth = x.shape[1 if time_major else 0], x.shape[2]
    units = (
        check_cell(node, _FORWARD, node.input(_FORWARD_STATE), batch, depth),
        check_cell(node, _BACKWARD, node.input(_BACKWARD_STATE), batch, depth),
    )
    hybrid = node.input(1).type != TensorType.FLOAT32
    use_aux = _check_auxiliary(node, x, aux, units)
    aux_depth = aux.shape[2] if aux is not None and use_aux else depth
    stride = depth if hybrid or time_major else aux_depth
    if aux_depth < stride:
        raise UndefinedResultError(node.op, "an auxiliary input shallower than the input is read beyond its end")
    activation, merge = function_of(node), bool(node.options.get("merge_outputs", False))
    node.check(len(node.outputs) == (1 if merge else 2), "number of outputs", got=len(node.outputs))
    if hybrid and merge and time_major and batch > 1 and not is_asymmetric(node):
        raise UndefinedResultError(node.op, "merged 8-bit outputs of several batches, time first, read through null")

    def build(inputs: Inputs) -> tuple[RnnCell, RnnCell]:
        return (
            RnnCell.of(node, inputs, _FORWARD, activation, _FORWARD_AUX if use_aux else -1),
            RnnCell.of(node, inputs, _BACKWARD, activation, _BACKWARD_AUX if use_aux else -1),
        )

    data = BothData(
        cells=bind(node, (*_FORWARD, *_BACKWARD, _FORWARD_AUX, _BACKWARD_AUX), build),
        units=units,
        time_major=time_major,
        merge=merge,
        rounds=x.shape[0] if hybrid and time_major else 1,
        aux=use_aux,
        aux_stride=stride,
        crossed=aux is not None and not use_aux and time_major,
    )
    depths = (sum(units),) if merge else units
    shapes = tuple((*x.shape[:2], d) for d in depths)
    return Prepared(shapes, data, eval_both, updates=(_FORWARD_STATE, _BACKWARD_STATE))


def _check_auxiliary(node: Node, x: Operand, aux: Operand | None, units: tuple[int, int]) -> bool:
    """Return whether there are auxiliary weights: both or none, of the right shapes, with their input."""
    weights = node.optional(_FORWARD_AUX), node.optional(_BACKWARD_AUX)
    node.check((weights[0] is None) == (weights[1] is None), "auxiliary weights for one direction only")
    if aux is not None and weights[0] is None:
        node.check(aux.shape == x.shape, "shape", aux, expected=list(x.shape), got=list(aux.shape))
        return False
    if weights[0] is None:
        return False
    if aux is None:
        node.refuse("auxiliary weights without an auxiliary input")
    node.check(len(aux.shape) == 3 and aux.shape[:2] == x.shape[:2], "shape", aux, got=list(aux.shape))
    for operand, size in zip(weights, units, strict=True):
        assert operand is not None
        expected = (size, aux.shape[2])
        node.check(operand.shape == expected, "shape", operand, expected=list(expected), got=list(operand.shape))
    return True


def _both_forms(data: BothData, *inputs: Array | None) -> list[Form]:
    x = inputs[0]
    assert x is not None
    depths = (sum(data.units),) if data.merge else data.units
    return [((*x.shape[:2], depth), np.dtype(np.float32)) for depth in depths]


@updating(_both_forms, _FORWARD_STATE, _BACKWARD_STATE)
def eval_both(data: BothData, outs: Sequence[Array], *inputs: Array | None) -> Call:
    """Source: bidirectional_sequence_rnn EvalFloat, EvalHybrid."""
    x, aux = inputs[0], inputs[_AUX]
    hidden = inputs[_FORWARD_STATE], inputs[_BACKWARD_STATE]
    assert x is not None
    sides = [np.ascontiguousarray(x), np.ascontiguousarray(aux if data.crossed and aux is not None else x)]
    parts = [np.empty((*x.shape[:2], units), np.float32) for units in data.units] if data.merge else outs

    def call() -> None:
        extra = _moments(data, x, aux) if data.aux and aux is not None else None
        for number, cell in enumerate(data.cells(inputs)):
            state = hidden[number]
            assert state is not None
            order = {"time_major": data.time_major, "backwards": number == 1}
            cell.run(sides[number], extra, state, parts[number], **order, rounds=data.rounds)
        if data.merge:
            np.concatenate(parts, axis=2, out=outs[0])

    return call


def _moments(data: BothData, x: Array, aux: Array) -> Array:
    """Return the auxiliary input as the source walks over it: moments `aux_stride` apart, rows of full depth."""
    if data.aux_stride == aux.shape[2]:
        return np.ascontiguousarray(aux)
    flat = np.ascontiguousarray(aux).reshape(-1)
    first, second, depth = aux.shape
    rows = (np.arange(first)[:, None] * second + np.arange(second)) * data.aux_stride
    if data.time_major:  # only moments are apart by the wrong stride; a moment's rows follow each other
        rows = np.arange(first)[:, None] * second * data.aux_stride + np.arange(second) * depth
    return np.asarray(flat[rows[:, :, None] + np.arange(depth)])


_WEIGHTS = "{w} {w} float32 float32"


def _types(w: str) -> str:
    cell = _WEIGHTS.format(w=w)
    return f"float32 {cell} {cell} float32? {w}? {w}? -> float32 float32?"


BOTH = (
    Kernel("BIDIRECTIONAL_SEQUENCE_RNN", _types("float32"), prepare_both, (1, 3)),
    Kernel("BIDIRECTIONAL_SEQUENCE_RNN", _types("int8|uint8"), prepare_both, (1, 3)),
)

KERNELS = (*ONE, *BOTH, *valid(tflite(until="tflite-2.14"), *floats_unclaimed(ONE, BOTH)))
