"""The plain recurrent cell: h = f(W x + V a + R h + b), float or with 8-bit weights.

Source: LiteRT 2.3 kernel_utils.cc RnnBatchStep. Order: bias, then x, then the auxiliary input, then the hidden state,
each added to the running sum. Float products add in four lanes. With 8-bit weights every row of x, a and h is
quantized by itself, and a product whose left side is all zero is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.hybrid import HybridSums
from tflq.engine.kernels.families.recurrent.parts import Inputs, Weights, activate, apply, optional_matrix
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.dynamic_range import NO_INTEGERS, ByteMatrix, Integers, add_defined, quantize_rows
from tflq.engine.numerics.products import add_products
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Rows from which on a product of codes goes through tiles, and products of that many elements.
_MANY, _LARGE = 8, 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix of K by N for compiled code, as floats or as what add_quantized takes; the other has no rows."""

    floats: Array  # (K, N)
    codes: Integers
    tiled: ByteMatrix | None  # the codes, for many rows; None of floats

    @classmethod
    def of(cls, weights: Weights, rows: int) -> Matrix:
        """Prepare weights for products of `rows` rows."""
        if not isinstance(weights, ByteMatrix):
            return cls(np.array(weights), NO_INTEGERS, None)
        tiled = weights
        if _is_large(rows, weights):
            tiled = replace(weights, tiles=HybridSums.of_rows(weights.codes, rows).of_codes)
        return cls(np.zeros((0, 0), np.float32), weights.integers(is_padded=True), tiled)

    def add(self, x: Array, asymmetric: bool, out: Array, undefined: Array) -> None:
        """Add steps `x` (S, B, K) times the matrix to `out` (S, B, N); `undefined` becomes 1 if a row is undefined."""
        rows, sums = x.reshape(-1, x.shape[2]), out.reshape(-1, out.shape[2])
        if self.tiled is None:
            add_products(self.floats, rows, sums)
        elif _is_large(len(rows), self.tiled) and np.abs(x).max(axis=(1, 2)).min() > 0:
            self.tiled.accumulate(quantize_rows(rows, asymmetric), sums)
        else:
            _add_steps(x, out, self.codes, asymmetric, undefined)


def _is_large(rows: int, matrix: ByteMatrix) -> bool:
    return rows >= _MANY and rows * matrix.codes.size >= _LARGE


@dataclass(frozen=True, slots=True, eq=False)
class RnnCell:
    """One cell."""

    bias: Array  # (units,) float32
    activation: int
    asymmetric: bool  # how rows are quantized
    weights: Matrix
    recurrent: Matrix
    auxiliary: Matrix | None

    @classmethod
    def of(
        cls, node: Node, inputs: Inputs, positions: tuple[int, int, int], activation: int, auxiliary: int = -1
    ) -> RnnCell:
        """Build the cell of the operands at `positions` (weights, recurrent weights, bias) and `auxiliary`, if any."""
        weights, recurrent = (optional_matrix(node, p, inputs) for p in positions[:2])
        bias, shape = inputs[positions[2]], node.input(0).shape
        rows, step = prod(shape[:-1]), shape[-2] if len(shape) == 2 or node.options.get("time_major", False) else 1
        assert weights is not None  # prepare saw to it
        assert recurrent is not None
        assert bias is not None
        extra = optional_matrix(node, auxiliary, inputs) if auxiliary >= 0 else None
        matrices = (
            Matrix.of(weights, rows),
            Matrix.of(recurrent, step),
            None if extra is None else Matrix.of(extra, rows),
        )
        return cls(np.array(bias), activation, is_asymmetric(node), *matrices)

    def run(
        self, x: Array, aux: Array | None, hidden: Array, out: Array, *, time_major: bool, backwards: bool, rounds: int
    ) -> None:
        """Feed `x` and `aux` (T, B, depth), or (B, T, depth), `rounds` times over; fill `out`, laid out alike.

        `hidden` (B, units) changes in place. `backwards` takes the last moment first. Arrays are contiguous.

        Raises:
            UndefinedResultError: A row to be quantized holds NaN or an infinity.
        """
        (first, second, units), undefined = out.shape, np.zeros(1, np.int8)
        time, step = (first, second) if time_major else (second, 1)
        steps = out.reshape(-1, step, units)
        steps[...] = self.bias  # what all rounds begin with: the sums of all steps before the hidden state
        self.weights.add(x.reshape(-1, step, x.shape[2]), self.asymmetric, steps, undefined)
        if aux is not None and self.auxiliary is not None:
            self.auxiliary.add(aux.reshape(-1, step, aux.shape[2]), self.asymmetric, steps, undefined)
        order = np.arange(time)[:: -1 if backwards else 1].copy()
        begun = out.copy() if rounds > 1 else out
        for number in range(rounds):
            if number:
                out[...] = begun
            self._recur(order, hidden.reshape(-1, step, units), out.reshape(-1, time, step, units), undefined)
        if undefined[0]:
            raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")

    def _recur(self, order: Array, hidden: Array, out: Array, undefined: Array) -> None:
        matrix, step = self.recurrent, hidden.shape[1]
        if matrix.tiled is None or len(hidden) > 1 or not _is_large(step, matrix.tiled):
            options = matrix.floats, matrix.codes, self.asymmetric, self.activation
            _recur(order, out, *options, hidden, undefined)
            return
        for t in order:
            matrix.add(hidden, self.asymmetric, out[:, t], undefined)
            hidden[...] = out[:, t] = activate(self.activation, out[:, t])


@writes("out", "undefined")
@in_pieces(lambda x, out, *_: x.size * out.shape[2], x="s", out="s")
@compiled
def _add_steps(x: Array, out: Array, codes: Any, asymmetric: bool, undefined: Array) -> None:
    """Add the rows of all steps, `x` (S, B, K), times 8-bit weights to `out` (S, B, N).

    `undefined` becomes 1 if a row cannot be quantized.

    Prepare guarantees: these shapes, and that `codes` are what add_quantized takes.
    """
    for s in range(x.shape[0]):
        if not add_defined(x[s], asymmetric, codes, out[s]):
            undefined[0] = 1
            return


@writes("out", "hidden", "undefined")
@in_pieces(lambda order, out, *_: order.size * out[:, 0].size * (out.shape[3] + 8), order="t")
@compiled
def _recur(
    order: Array,
    out: Array,
    floats: Array,
    codes: Any,
    asymmetric: bool,
    activation: Int,
    hidden: Array,
    undefined: Array,
) -> None:
    """Take the moments in `order` (T): add the hidden states (N, B, U) times a matrix to `out` (N, T, B, U) and
    activate; these are the next hidden states, too.

    The matrix is `floats` (U, U), or `codes` as add_quantized takes them if that has no rows. `undefined` becomes 1 if
    a row cannot be quantized.

    Prepare guarantees: these shapes; `order` holds moments of `out`.
    """
    total = np.empty((hidden.shape[1], hidden.shape[2]), np.float32)
    for t in order:
        for n in range(out.shape[0]):
            state = hidden[n]
            for b in range(total.shape[0]):
                for u in range(total.shape[1]):
                    total[b, u] = out[n, t, b, u]
            if floats.shape[0] > 0:
                add_products(floats, state, total)
            elif not add_defined(state, asymmetric, codes, total):
                undefined[0] = 1
                return
            for b in range(total.shape[0]):
                for u in range(total.shape[1]):
                    state[b, u] = apply(activation, total[b, u])
                    out[n, t, b, u] = state[b, u]


def is_asymmetric(node: Node) -> bool:
    """Return whether float activations are quantized with a zero point of their own."""
    return bool(node.options.get("asymmetric_quantize_inputs", False))


def check_cell(node: Node, positions: tuple[int, int, int], state: Operand, batch: int, depth: int) -> int:
    """Check shapes and types of a cell's weights, recurrent weights, bias and state; return the number of units."""
    weights, recurrent, bias = (node.input(p) for p in positions)
    for operand in (weights, recurrent):
        require_rank(node, operand, 2)
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
