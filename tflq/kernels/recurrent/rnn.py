"""The plain recurrent cell: h = f(W x + V a + R h + b), float or with 8-bit weights.

Source: LiteRT 2.3 kernel_utils.cc RnnBatchStep. Order: bias, then x, then the auxiliary input, then the hidden state,
each added to the running sum. Float products add in four lanes. With 8-bit weights every row of x, a and h is
quantized by itself, and a product whose left side is all zero is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.kernels.kernel import Array, Node, Operand
from tflq.kernels.recurrent.activation import activate
from tflq.kernels.recurrent.binding import Inputs, Weights, optional_matrix
from tflq.numerics.dynamic_range import ByteMatrix, quantize_rows
from tflq.numerics.lanes import add_products, is_zero


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One cell. Float matrices are (depth, units)."""

    weights: Weights
    auxiliary: Weights | None
    recurrent: Weights
    bias: Array  # (units,) float32
    activation: int
    asymmetric: bool  # how rows are quantized

    @classmethod
    def of(
        cls, node: Node, inputs: Inputs, positions: tuple[int, int, int], activation: int, auxiliary: int = -1
    ) -> Cell:
        """From the operands at `positions` (weights, recurrent weights, bias), and `auxiliary` where not negative."""
        weights, recurrent = (optional_matrix(node, p, inputs) for p in positions[:2])
        bias = inputs[positions[2]]
        assert weights is not None  # prepare saw to it
        assert recurrent is not None
        assert bias is not None
        extra = optional_matrix(node, auxiliary, inputs) if auxiliary >= 0 else None
        return cls(weights, extra, recurrent, bias, activation, is_asymmetric(node))

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """One moment: `x` (B, I), `aux` (B, A), one state (B, units). The output is also the new state."""
        (hidden,) = states
        total = np.empty((len(x), len(self.bias)), np.float32)
        total[:] = self.bias
        self._add(self.weights, x, total)
        if aux is not None and self.auxiliary is not None:
            self._add(self.auxiliary, aux, total)
        self._add(self.recurrent, hidden, total)
        hidden[:] = activate(self.activation, total)
        return hidden

    def _add(self, weights: Weights, x: Array, total: Array) -> None:
        if not isinstance(weights, ByteMatrix):
            add_products(weights, np.ascontiguousarray(x), total)
        elif not is_zero(x):
            weights.accumulate(quantize_rows(x, self.asymmetric), total)


def is_asymmetric(node: Node) -> bool:
    """Whether float activations are quantized with a zero point of their own."""
    return bool(node.options.get("asymmetric_quantize_inputs", False))


def check_cell(node: Node, positions: tuple[int, int, int], state: Operand, batch: int, depth: int) -> int:
    """Shapes and types of a cell's weights, recurrent weights and bias, and its state: the number of units."""
    weights, recurrent, bias = (node.input(p) for p in positions)
    for operand in (weights, recurrent):
        node.check(len(operand.shape) == 2, "number of dimensions", operand, expected=2, got=len(operand.shape))
    units = weights.shape[0]
    node.check(weights.shape[1] == depth, "weights' depth", weights, expected=depth, got=weights.shape[1])
    node.check(bias.shape == (units,), "shape", bias, expected=[units], got=list(bias.shape))
    expected = (units, units)
    node.check(recurrent.shape == expected, "shape", recurrent, expected=list(expected), got=list(recurrent.shape))
    node.check(recurrent.type == weights.type, "type", recurrent, expected=weights.type.label, got=recurrent.type.label)
    check_state(node, state, (batch, units))
    return units


def check_state(node: Node, state: Operand, shape: tuple[int, ...]) -> None:
    """A state is a variable of that shape."""
    node.check(state.is_variable, "must be a variable", state)
    node.check(state.shape == shape, "shape", state, expected=list(shape), got=list(state.shape))
