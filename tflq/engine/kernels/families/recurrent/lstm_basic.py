"""LSTM of kernel type BASIC: one product makes all gates, in the order input, cell, forget, output.

Source: LiteRT 2.3 lstm.cc basic; optimized_ops.h LstmCell (float; uint8 with int16 gates and state).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.recurrent.binding import Inputs, bind
from tflq.engine.kernels.kernel import Node, Prepared, Shape
from tflq.engine.numerics import eigen, eigen_activations
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.engine.numerics.elementary import logistic, tanh
from tflq.engine.numerics.fixedpoint import doubling_high_mul, rescale, saturating_add
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away
from tflq.engine.numerics.scaling import check_log2
from tflq.engine.numerics.stages import HalfUpTwice, OutputPipeline, StageOf, type_range
from tflq.typing import Array

X, ACTIVATION, WEIGHTS, BIASES, STATE = range(5)
#: The integer bits of the only state that the source takes.
_STATE_BITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    weights: Callable[[Inputs], Array]  # (I + C, 4 C)
    cache: int  # bytes, see eigen.product


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedData:
    """Constants of the 8-bit form."""

    products: Callable[[Inputs], Contraction]  # centred weights
    gates: OutputPipeline  # LSB of products -> Q3.12


def _shapes(node: Node) -> tuple[Shape, Shape, Shape, Shape]:
    """Check the inputs' shapes; return those of the four outputs."""
    x, activation, weights, biases, state = (node.input(p) for p in range(5))
    node.check(int(node.options.get("kernel_type", 0)) == 1, "kernel_type", expected="BASIC with 5 inputs")
    node.check(len(node.outputs) == 4, "number of outputs", expected=4, got=len(node.outputs))
    for operand in (x, activation, weights, state):
        node.check(len(operand.shape) == 2, "number of dimensions", operand, expected=2, got=len(operand.shape))
    batches, inputs = x.shape
    cells = activation.shape[1]
    for operand, shape in (
        (activation, (batches, cells)),
        (weights, (4 * cells, inputs + cells)),
        (biases, (4 * cells,)),
        (state, (batches, cells)),
    ):
        node.check(operand.shape == shape, "shape", operand, expected=list(shape), got=list(operand.shape))
    for operand in (activation, state):
        node.check(not operand.is_constant, "is written to, and must not be constant", operand)
    return (batches, cells), (batches, cells), (batches, inputs + cells), (batches, 4 * cells)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the transposed weights only."""
    shapes = _shapes(node)
    data = FloatData(
        bind(node, (WEIGHTS,), lambda inputs: np.ascontiguousarray(_present(inputs[WEIGHTS]).T)),
        arithmetic.first_level_cache,
    )
    return Prepared(shapes, data, evaluate_float, (ACTIVATION, STATE))


def evaluate_float(data: FloatData, *inputs: Array | None) -> tuple[Array, ...]:
    """Source: LstmCell (float). Eigen assigns row by row, aligned to the outputs' addresses."""
    x, activation, _, biases, state = (_present(value) for value in inputs)
    joined = np.concatenate((x, activation), axis=1)
    gates = eigen.product(data.weights(inputs), joined, cache=data.cache) + biases
    input_gate, update, forget, output_gate = np.split(gates, 4, axis=1)
    new_state = _logistic(input_gate) * eigen_activations.tanh(update) + _logistic(forget) * state
    output = _logistic(output_gate) * eigen_activations.tanh(new_state)
    return output, new_state, joined, gates, output, new_state


def _logistic(gate: Array) -> Array:
    cells = gate.shape[1]
    return np.stack([eigen_activations.logistic(row, b * cells) for b, row in enumerate(gate)])


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare for ruy's AVX kernels, which compute the product and round half up, twice."""
    return prepare_with(node, HalfUpTwice.of)


def prepare_with(node: Node, stage_of: StageOf) -> Prepared:
    """Prepare the multiplier, 2**12 times the biases' scale. x and activation always have zero point 128."""
    shapes = _shapes(node)
    weights, state = node.input(WEIGHTS), node.outputs[1]
    log2, is_pot = check_log2(state.scale)
    node.check(is_pot, "scale must be a power of two", state, got=state.scale)
    node.check(15 + log2 == _STATE_BITS, "scale", state, expected=2.0 ** (_STATE_BITS - 15), got=state.scale)

    def build(inputs: Inputs) -> Contraction:
        centred = _present(inputs[WEIGHTS]).astype(np.int16) - np.int16(weights.zero_point)
        return Contraction.of(centred.T, (-128, 127))

    stage = stage_of(np.float64(4096) * np.float64(node.input(BIASES).scale))
    gates = OutputPipeline(stage, ZeroPoint(0), type_range(np.int16), np.dtype(np.int16))
    data = QuantizedData(bind(node, (WEIGHTS,), build), gates)
    return Prepared(shapes, data, evaluate_quantized, (ACTIVATION, STATE))


def evaluate_quantized(data: QuantizedData, *inputs: Array | None) -> tuple[Array, ...]:
    """Source: LstmCell<4>. Overflow: accumulators wrap int32; gates, state and activation saturate."""
    x, activation, _, biases, state = (_present(value) for value in inputs)
    joined = np.concatenate((x, activation), axis=1)
    products = data.products(inputs)
    sums = accumulators_int32(products((joined.astype(np.int16) - np.int16(128)).astype(products.real)))
    gates = data.gates(sums, biases)
    new_state, output = np.empty(state.shape, np.int16), np.empty(state.shape, np.uint8)
    _update(gates, np.array(state), new_state, output)
    return output, new_state, joined, gates, output, new_state


def _present(value: Array | None) -> Array:
    assert value is not None
    return value


@in_pieces(100, state="r", gates="r", new_state="r", output="r")
@compiled
def _update(gates: Array, state: Array, new_state: Array, output: Array) -> None:
    """Update the state. Gates and state are Q3.12 and Q4.11; the activation is Q0.7 plus 128.

    Prepare guarantees: `state`, `new_state` and `output` are (batch, cells), `gates` is (batch, 4 * cells).
    """
    cells = state.shape[1]
    for b in range(state.shape[0]):
        for i in range(cells):
            input_gate = logistic(np.int64(gates[b, i]), 3, 16)
            update = tanh(np.int64(gates[b, cells + i]), 3, 16)
            forget = logistic(np.int64(gates[b, 2 * cells + i]), 3, 16)
            output_gate = logistic(np.int64(gates[b, 3 * cells + i]), 3, 16)
            entered = rescale(doubling_high_mul(input_gate, update, 16), 0, _STATE_BITS, 16)
            total = saturating_add(entered, doubling_high_mul(forget, np.int64(state[b, i]), 16), 16)
            new_state[b, i] = total
            active = doubling_high_mul(output_gate, tanh(rescale(total, _STATE_BITS, 3, 16), 3, 16), 16)
            output[b, i] = 128 + clamp(divide_by_pot_half_away(active, 8), -128, 127)
