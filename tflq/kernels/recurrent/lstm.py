"""The LSTM cell on float activations, with float32 or 8-bit weights.

A gate is f(W x + V a + R h + p * c + b); with layer normalisation the sum without b is normalised and scaled first.
Float products come from Eigen, each added to the running sum. With 8-bit weights rows are quantized one by one, sums
are exact, and a product whose left side is all zero is left out.
Source: LiteRT 2.3 lstm_eval.cc LstmStepFloat, LstmStepHybrid; tensor_utils.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.kernels.kernel import Array, Node
from tflq.kernels.recurrent.activation import activate, function_of
from tflq.kernels.recurrent.binding import Inputs, Weights, optional_matrix
from tflq.kernels.recurrent.lstm_operands import CELL, FORGET, INPUT, OUTPUT, Roles, Sizes, is_diagonal
from tflq.kernels.recurrent.rnn import is_asymmetric
from tflq.numerics import eigen
from tflq.numerics.compiled import compiled
from tflq.numerics.dynamic_range import ByteMatrix, Rows, quantize_rows
from tflq.numerics.lanes import is_zero

#: Which part of the scratch buffer a gate is written to: with an input gate, and without.
_PLACE = {INPUT: 0, CELL: 1, FORGET: 2, OUTPUT: 3}
_PLACE_CIFG = {CELL: 0, FORGET: 1, OUTPUT: 2}


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """One gate's weights; float matrices are (depth, cells), vectors (cells,) float32."""

    weights: Weights
    auxiliary: Weights | None
    recurrent: Weights  # a vector where it is diagonal
    peephole: Array | None
    norm: Array | None
    bias: Array
    offset: int  # elements between a 16-byte boundary and the gate in the source's scratch buffer


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One cell, bound to its weights."""

    sizes: Sizes
    gates: dict[int, Gate]
    projection: Weights | None
    projection_bias: Array | None
    activation: int
    cell_clip: np.float32  # 0: none
    projection_clip: np.float32
    asymmetric: bool
    quantized: bool  # weights have 8 bits

    @classmethod
    def of(cls, node: Node, roles: Roles, sizes: Sizes, inputs: Inputs, *, auxiliary: bool = False) -> Cell:
        """From the operands at their roles."""
        first = optional_matrix(node, roles.inputs[OUTPUT], inputs)
        return cls(
            sizes=sizes,
            gates={gate: _gate_of(node, roles, sizes, inputs, gate, auxiliary) for gate in sizes.gates},
            projection=optional_matrix(node, roles.projection, inputs),
            projection_bias=_vector(node, roles.projection_bias, inputs),
            activation=function_of(node),
            cell_clip=np.float32(node.options.get("cell_clip", 0)),
            projection_clip=np.float32(node.options.get("proj_clip", 0)),
            asymmetric=is_asymmetric(node),
            quantized=isinstance(first, ByteMatrix),
        )

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """One moment: `x` (B, I), `aux` (B, A), states hidden (B, O) and memory (B, C). Gives the new hidden state."""
        hidden, memory = states
        lefts = self._left(x), None if aux is None else self._left(aux), self._state(hidden)

        def gate(number: int) -> Array:
            return self._gate(number, lefts, hidden, memory, row)

        enter = None if self.sizes.cifg else gate(INPUT)
        forget, update = gate(FORGET), gate(CELL)
        memory *= forget
        memory += update * (np.float32(1) - forget if enter is None else enter)
        if self.cell_clip > 0:
            memory[:] = clip(memory, self.cell_clip)
        product = gate(OUTPUT) * activate(self.activation, memory, present=update)
        hidden[:] = product if self.projection is None else self._project(self.projection, product)
        return hidden

    def _left(self, x: Array) -> Array | Rows | None:
        """The left side of a product; None where it is all zero."""
        if is_zero(np.ascontiguousarray(x)):
            return None
        return quantize_rows(x, self.asymmetric) if self.quantized else np.ascontiguousarray(x)

    def _state(self, hidden: Array) -> Array | Rows | None:
        """The same for the hidden state, whose float product is never left out."""
        return self._left(hidden) if self.quantized else np.ascontiguousarray(hidden)

    def _gate(
        self, number: int, lefts: Sequence[Array | Rows | None], hidden: Array, memory: Array, row: int
    ) -> Array:  # fmt: skip
        gate = self.gates[number]
        total = np.empty((len(hidden), self.sizes.cells), np.float32)
        total[:] = 0 if gate.norm is not None else gate.bias
        present: Array | None = None  # what the gate's own buffer holds, where the sum is in the other one
        for weights, left in zip((gate.weights, gate.auxiliary, gate.recurrent), lefts, strict=True):
            if weights is None or left is None:
                continue
            if isinstance(weights, ByteMatrix):
                assert isinstance(left, Rows)
                weights.accumulate(left, total)
            elif weights.ndim == 1:
                total += weights * hidden
            else:
                assert isinstance(left, np.ndarray)
                summed = eigen.product(weights, left) + total
                total, present = summed, total if present is None else None
        if gate.peephole is not None:
            total += gate.peephole * memory
        if gate.norm is not None:
            normalise(total)
            total *= gate.norm
            total += gate.bias
        if number == CELL:
            return activate(self.activation, total, present)
        return eigen.logistic(total, gate.offset + row * self.sizes.cells)

    def _project(self, weights: Weights, product: Array) -> Array:
        result = np.zeros((len(product), self.sizes.outputs), np.float32)
        if self.projection_bias is not None:
            result += self.projection_bias
        if isinstance(weights, ByteMatrix):
            if not is_zero(product):
                weights.accumulate(quantize_rows(product, self.asymmetric), result)
        else:
            result = eigen.product(weights, product) + result
        return clip(result, self.projection_clip) if self.projection_clip > 0 else result


def _gate_of(node: Node, roles: Roles, sizes: Sizes, inputs: Inputs, gate: int, auxiliary: bool) -> Gate:
    weights, bias = optional_matrix(node, roles.inputs[gate], inputs), inputs[roles.biases[gate]]
    recurrent = node.input(roles.recurrent[gate])
    values = inputs[roles.recurrent[gate]]
    rows = values if is_diagonal(recurrent) else optional_matrix(node, roles.recurrent[gate], inputs)
    assert weights is not None  # check saw to it
    assert rows is not None
    assert bias is not None
    place = (_PLACE_CIFG if sizes.cifg else _PLACE)[gate]
    return Gate(
        weights=weights,
        auxiliary=optional_matrix(node, roles.auxiliary[gate], inputs) if auxiliary else None,
        recurrent=rows,
        peephole=_vector(node, roles.peephole(gate), inputs),
        norm=_vector(node, roles.norms[gate], inputs) if sizes.normalised else None,
        bias=bias,
        offset=place * sizes.cells * sizes.batches,
    )


def _vector(node: Node, position: int | None, inputs: Inputs) -> Array | None:
    """A vector as float32: 8-bit codes, read as int8, times their scale. Source: NeonVectorScalarMultiply."""
    operand = None if position is None else node.optional(position)
    if operand is None or position is None:
        return None
    value = inputs[position]
    assert value is not None
    return value if value.dtype == np.float32 else value.view(np.int8).astype(np.float32) * operand.scale


def clip(x: Array, limit: np.float32) -> Array:
    """`x` held inside [-limit, limit]; NaN gives the limit. Source: PortableCwiseClipping."""
    upper = np.where(x < limit, x, limit)
    return np.where(upper < -limit, -limit, upper)


@compiled
def normalise(x: Array) -> None:
    """Each row minus its mean, over its standard deviation, in place; sums in order.

    Source: PortableMeanStddevNormalization.
    """
    rows, size = x.shape
    count = np.float32(size)
    for b in range(rows):
        total = np.float32(0)
        for i in range(size):
            total += x[b, i]
        mean = total / count
        squares = np.float32(0)
        for i in range(size):
            difference = x[b, i] - mean
            squares += difference * difference
        inverse = np.float32(1) / np.sqrt(squares / count + np.float32(1e-8))
        for i in range(size):
            x[b, i] = (x[b, i] - mean) * inverse
