"""Activations, bound weights, promises and loops over time of recurrent cells.

Activation functions of recurrent cells, applied to float32 vectors.

Source: LiteRT 2.3 tensor_utils.h ApplyActivationToVector; portable_tensor_utils.cc ApplyReluToVector and its kin.

Weights as a step takes them: built once if the model holds them, at every run if it computes them.

Promises of recurrent operators.

Loops over time: all batches step together where time comes first, one after the other where the batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.kernels.kernel import Kernel, Node, Operand, close, promising
from tflq.engine.numerics import eigen
from tflq.engine.numerics.dynamic_range import ByteMatrix
from tflq.engine.numerics.eigen import tanh_element
from tflq.model.ir import TensorType
from tflq.typing import Array

NONE, RELU, RELU_N1_TO_1, RELU6, TANH, SIGN_BIT = range(6)


def function_of(node: Node) -> int:
    """Return the node's fused activation function, a value of the schema's ActivationFunctionType."""
    function = int(node.options.get("fused_activation_function", 0))
    node.check(function <= SIGN_BIT, "fused activation function", expected="NONE to SIGN_BIT", got=function)
    return function


def activate(function: int, x: Array, present: Array | None = None) -> Array:
    """Apply `function` to `x`. NONE writes nothing: the result is the destination, `present`, else `x` itself."""
    if function == TANH:
        return eigen.tanh(x)
    if function == NONE:
        return x if present is None else present
    if function == SIGN_BIT:
        return np.signbit(x).astype(np.float32)
    low, high = {RELU: (0, None), RELU_N1_TO_1: (-1, 1), RELU6: (0, 6)}[function]
    y = np.where(x > np.float32(low), x, np.float32(low))
    return y if high is None else np.where(y < np.float32(high), y, np.float32(high))


@compiled
def apply(function: Int, x: Real) -> Real:
    """Apply `function` to one element, as `activate` has it; NONE gives `x`."""
    if function == TANH:
        return tanh_element(x)
    if function == SIGN_BIT:
        return np.float32(1) if np.signbit(x) else np.float32(0)
    if function == NONE:
        return x
    low = np.float32(-1) if function == RELU_N1_TO_1 else np.float32(0)
    y = x if x > low else low
    if function == RELU:
        return y
    high = np.float32(6) if function == RELU6 else np.float32(1)
    return y if y < high else high


Inputs = Sequence[Array | None]
Weights = Array | ByteMatrix
T = TypeVar("T")


def bind(node: Node, positions: Sequence[int], build: Callable[[Inputs], T]) -> Callable[[Inputs], T]:
    """Return `build(inputs)`, called now if all operands at `positions` are constant."""
    operands = [node.optional(p) for p in positions]
    if any(o is not None and not o.is_constant for o in operands):
        return build
    constants = build([None if o is None else o.value for o in node.inputs])
    return lambda inputs: constants


def matrix(operand: Operand, value: Array) -> Weights:
    """Return weights (units, depth): float ones transposed, for loops over units, 8-bit ones with their scale."""
    if value.dtype == np.float32:
        return np.ascontiguousarray(value.T)
    return ByteMatrix.of(value, operand.scale)


def optional_matrix(node: Node, position: int, inputs: Inputs) -> Weights | None:
    """Return the matrix at `position`, None if the operand is absent."""
    operand = node.optional(position)
    value = inputs[position] if operand is not None else None
    return None if operand is None or value is None else matrix(operand, value)


#: Floats up to 2.14.
UNCLAIMED_2_14 = close("2.14 multiplies matrices by vectors of floats in another order")


def floats_unclaimed(*groups: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the rows of float activations, whose bits are not claimed up to 2.14."""
    rows = promising(UNCLAIMED_2_14, *groups)
    return tuple(row for row in rows if row.signature.starts_with(TensorType.FLOAT32))


class SequenceCell(Protocol):
    """The steps of a recurrent operator."""

    @property
    def by_row(self) -> object:
        """None if `run_rows` cannot serve."""
        ...

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """Run one step of `x` and `aux` (B, depth); return output rows. The states change from row `row` on."""
        ...

    def run_rows(self, x: Array, states: Sequence[Array], out: Array) -> None:
        """Run all steps of `x` (N, T, depth), one batch after the other; fill `out` (N, T, units)."""
        ...


def run(
    cell: SequenceCell,
    x: Array,
    aux: Array | None,
    states: Sequence[Array],
    out: Array,
    *,
    time_major: bool,
    backwards: bool = False,
) -> None:
    """Feed `x` (time, batch, depth), or (batch, time, depth), to `cell` and fill `out`, laid out alike.

    `states` are (batch, size) each. `backwards` takes the last moment first.
    """
    if aux is None and cell.by_row is not None and x.size and (not time_major or x.shape[1] == 1):
        order = slice(None, None, -1 if backwards else 1)
        batch_first = [a.swapaxes(0, 1) if time_major else a for a in (x, out)]
        rows_out = np.empty(batch_first[1].shape, out.dtype)
        cell.run_rows(np.ascontiguousarray(batch_first[0][:, order]), states, rows_out)
        batch_first[1][...] = rows_out[:, order]
        return
    moments = range(x.shape[0 if time_major else 1])
    order_of = tuple(reversed(moments) if backwards else moments)
    if time_major:
        for t in order_of:
            out[t] = cell.step(x[t], None if aux is None else aux[t], states, 0)
        return
    for b in range(x.shape[0]):
        rows = [state[b : b + 1] for state in states]
        for t in order_of:
            out[b, t] = cell.step(x[b, t : t + 1], None if aux is None else aux[b, t : t + 1], rows, b)[0]


def state_of(value: Array | None, columns: int) -> Array:
    """Return a writable copy of a state tensor as (batch, columns)."""
    assert value is not None
    return np.array(value).reshape(-1, columns)
