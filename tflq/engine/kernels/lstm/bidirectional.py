"""BIDIRECTIONAL_SEQUENCE_LSTM: two LSTM cells over a sequence, one from each end.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.recurrent.binding import Inputs, bind
from tflq.engine.kernels.families.recurrent.lstm import Cell
from tflq.engine.kernels.families.recurrent.lstm_operands import BACKWARD, FLOAT_GATES, FORGET, FORWARD, Sizes, check
from tflq.engine.kernels.families.recurrent.sequence import run, state_of
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_AUX = 39
_STATES = (FORWARD.output_state, FORWARD.cell_state, BACKWARD.output_state, BACKWARD.cell_state)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the loops over both directions."""

    cells: Callable[[Inputs], tuple[Cell, Cell]]
    sizes: tuple[Sizes, Sizes]
    time_major: bool
    merge: bool
    stacked: bool  # the auxiliary input has weights of its own


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the operands and bind both cells."""
    node.check(len(node.inputs) == 48, "number of inputs", expected=48, got=len(node.inputs))
    x = node.input(0)
    node.check(len(x.shape) == 3, "number of dimensions", x, expected=3, got=len(x.shape))
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


def _check_auxiliary(node: Node, x: Operand, sizes: tuple[Sizes, Sizes]) -> bool:
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
