"""The plain recurrent cell: h = f(W x + V a + R h + b), float or with 8-bit weights.

Source: LiteRT 2.3 kernel_utils.cc RnnBatchStep. Order: bias, then x, then the auxiliary input, then the hidden state,
each added to the running sum. Float products add in four lanes. With 8-bit weights every row of x, a and h is
quantized by itself, and a product whose left side is all zero is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.jit.compiled import Int, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.families.recurrent.activation import activate, apply
from tflq.kernels.families.recurrent.binding import Inputs, Weights, optional_matrix
from tflq.kernels.kernel import Array, Node, Operand
from tflq.numerics.dynamic_range import NO_INTEGERS, ByteMatrix, add_quantized, are_finite, quantize_rows
from tflq.numerics.lanes import add_products, holds_zeros, is_zero


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One cell. Float matrices are (depth, units)."""

    weights: Weights
    auxiliary: Weights | None
    recurrent: Weights
    bias: Array  # (units,) float32
    activation: int
    asymmetric: bool  # how rows are quantized
    by_row: tuple[Any, ...] = field(init=False, repr=False)  # constants of _run_rows

    def __post_init__(self) -> None:
        matrices, nothing = (self.weights, self.recurrent), np.zeros((0, 0), np.float32)
        floats = tuple(nothing if isinstance(m, ByteMatrix) else np.array(m) for m in matrices)
        codes = tuple(m.integers() if isinstance(m, ByteMatrix) else NO_INTEGERS for m in matrices)
        is_float = not isinstance(self.weights, ByteMatrix)
        constants = np.array(self.bias), floats, codes, is_float, self.activation, self.asymmetric
        object.__setattr__(self, "by_row", constants)

    @classmethod
    def of(
        cls, node: Node, inputs: Inputs, positions: tuple[int, int, int], activation: int, auxiliary: int = -1
    ) -> Cell:
        """Build the cell of the operands at `positions` (weights, recurrent weights, bias) and `auxiliary`, if any."""
        weights, recurrent = (optional_matrix(node, p, inputs) for p in positions[:2])
        bias = inputs[positions[2]]
        assert weights is not None  # prepare saw to it
        assert recurrent is not None
        assert bias is not None
        extra = optional_matrix(node, auxiliary, inputs) if auxiliary >= 0 else None
        return cls(weights, extra, recurrent, bias, activation, is_asymmetric(node))

    def run_rows(self, x: Array, states: Sequence[Array], out: Array) -> None:
        """Run a whole sequence (N, T, I), each row a step of its own; fill `out` (N, T, units)."""
        undefined = np.zeros(1, np.int8)
        _run_rows(x, *self.by_row, states[0], out, undefined)
        if undefined[0]:
            raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """Run one step: `x` (B, I), `aux` (B, A), one state (B, units). The output is also the new state."""
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


@in_pieces(
    lambda x, bias, *_: x.shape[0] * x.shape[1] * (x.shape[2] + bias.size + 8) * bias.size, x="nt", hidden="n", out="nt"
)
@compiled
def _run_rows(
    x: Array,
    bias: Array,
    floats: Any,
    codes: Any,
    is_float: bool,
    activation: Int,
    asymmetric: bool,
    hidden: Array,
    out: Array,
    undefined: Array,
) -> None:
    """Feed `x` (N, T, I) row by row; fill `out` (N, T, U), change `hidden` (N, U) in place.

    `floats` are the matrices of x and of the hidden state (K, U), `codes` what add_quantized takes; of the other kind
    they have no rows. `undefined` becomes 1 where a row cannot be quantized.

    Prepare guarantees: these shapes.
    """
    total = np.empty((1, bias.size), np.float32)
    for n in range(x.shape[0]):
        for t in range(x.shape[1]):
            total[0] = bias
            for side in range(2):
                left = x[n, t : t + 1] if side == 0 else hidden[n : n + 1]
                if is_float:
                    add_products(floats[side], left, total)
                elif not holds_zeros(left):
                    if not are_finite(left):
                        undefined[0] = 1
                        return
                    matrix = codes[side]
                    add_quantized(left, asymmetric, matrix[0], matrix[1], matrix[2], matrix[3], total)
            for u in range(bias.size):
                hidden[n, u] = apply(activation, total[0, u])
            out[n, t] = hidden[n]


def is_asymmetric(node: Node) -> bool:
    """Return whether float activations are quantized with a zero point of their own."""
    return bool(node.options.get("asymmetric_quantize_inputs", False))


def check_cell(node: Node, positions: tuple[int, int, int], state: Operand, batch: int, depth: int) -> int:
    """Check shapes and types of a cell's weights, recurrent weights, bias and state; return the number of units."""
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
    """Require a state that is a variable of that shape."""
    node.check(state.is_variable, "must be a variable", state)
    node.check(state.shape == shape, "shape", state, expected=list(shape), got=list(state.shape))
