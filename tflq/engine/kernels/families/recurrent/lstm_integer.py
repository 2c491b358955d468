"""The LSTM cell on 8-bit activations, with a 16-bit cell state.

Gates add two products, each scaled to Q3.12 and saturated to int16; where layer normalisation is there they are scaled
to the intermediates' scales instead. The five intermediates are the four gates and the hidden state.
Source: LiteRT 2.3 unidirectional_sequence_lstm.cc and lstm.cc PopulateQuantizedLstmParams8x8_16,
PopulatePrecomputedZPTimesWeightsWithBias; lstm_eval.cc LstmStepInteger8x8_16; portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.engine.jit.pieces import matmul
from tflq.engine.kernels.families.recurrent.lstm_integer_steps import (
    add_peephole,
    curves,
    hide,
    look_up,
    multiply,
    normalise,
    run_steps,
    update_cell,
)
from tflq.engine.kernels.families.recurrent.lstm_operands import CELL, FORGET, INPUT, OUTPUT, SINGLE, Sizes
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.multiplier import Multiplier, quantize_multiplier
from tflq.engine.numerics.scaling import check_log2
from tflq.engine.numerics.stages import DoubleRounding, OutputStage
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_LOW16, _HIGH16 = -32768, 32767


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A matrix product scaled to a gate's Q3.12, or to the output state: all gates side by side."""

    weights: Array  # float64, (inputs, outputs): integers, so that products and sums below 2**53 are exact
    bias: Array  # int64, the zero point's share included
    stage: OutputStage

    def __call__(self, x: Array) -> Array:
        """Return the scaled int32 accumulators of int8 `x`. Overflow: the accumulator wraps int32."""
        sums = matmul(x.astype(np.float64), self.weights).astype(np.int64) + self.bias
        return np.asarray(self.stage(sums.astype(np.int32)))


@dataclass(frozen=True, slots=True, eq=False)
class Peephole:
    """Products of the cell state with one weight a cell."""

    weights: Array  # int16
    multiplier: Multiplier


@dataclass(frozen=True, slots=True, eq=False)
class LayerNorm:
    """Normalisation of a gate over its cells."""

    weights: Array  # int16
    bias: Array  # int32
    multiplier: Multiplier  # of the coefficients' scale, Q31
    guard: int  # replaces a variance below 1


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a step. Gates are in the order input (absent with CIFG), forget, cell, output."""

    gates: tuple[int, ...]
    from_input: Product
    from_state: Product
    peepholes: dict[int, Peephole]
    layer_norms: dict[int, LayerNorm]
    projection: Product | None
    hidden: Multiplier  # of output gate times tanh(cell) -> LSB of hidden state
    hidden_zero_point: ZeroPoint  # LSB of hidden state; negated where a projection follows
    state_zero_point: ZeroPoint  # LSB of output state
    cell_log2: int  # the cell state's scale is 2 ** this
    cell_clip: int  # LSB of cell state; 0: none
    projection_clip: int  # LSB of output state; 0: none
    cells: int
    outputs: int
    time_major: bool
    loop: tuple[Any, ...] | None = field(init=False, repr=False)  # constants of the compiled loop over time
    entry: tuple[Any, ...] = field(init=False, repr=False)  # constants of `multiply` for the input, if there is a loop

    def __post_init__(self) -> None:
        object.__setattr__(self, "loop", _loop(self))
        object.__setattr__(self, "entry", () if self.loop is None else _scaled_product(self.from_input))


def bind(node: Node, arithmetic: Arithmetic, sizes: Sizes, *, time_major: bool) -> OpData:
    """Return the constants of a node whose shapes were checked. Float32 scales are widened for the multipliers."""
    node.check(len(node.intermediates) == 5, "intermediates", expected=5, got=len(node.intermediates))
    return _data(node, arithmetic, sizes, time_major)


def _data(node: Node, arithmetic: Arithmetic, sizes: Sizes, time_major: bool) -> OpData:
    x, state, cell = node.input(0), node.input(SINGLE.output_state), node.input(SINGLE.cell_state)
    gates, norm = sizes.gates, sizes.normalised
    scales = {g: node.intermediates[g].scale if norm else np.float32(2.0**-12) for g in gates}
    cell_log2, is_pot = check_log2(cell.scale)
    node.check(is_pot, "scale must be a power of two", cell, got=cell.scale)
    if not 0 <= 15 + cell_log2 <= 6:
        raise UndefinedResultError("ApplyTanh", f"{15 + cell_log2} integer bits, for a cell scale of 2**{cell_log2}")
    hidden = node.intermediates[4]
    projected = node.optional(SINGLE.projection) is not None
    for operand in (x, state, hidden, node.outputs[0]):
        node.check(operand.is_quantized, "is not quantized", operand)
    return OpData(
        gates=gates,
        from_input=_product(node, arithmetic, x, SINGLE.inputs, gates, scales, biased=not norm),
        from_state=_product(node, arithmetic, state, SINGLE.recurrent, gates, scales, biased=False),
        peepholes=_peepholes(node, sizes, scales, cell_log2),
        layer_norms={g: _layer_norm(node, g) for g in gates} if norm else {},
        projection=_projection(node, arithmetic, hidden, state) if projected else None,
        hidden=quantize_multiplier(float(np.float32(2.0**-15 / float(hidden.scale) * 2.0**-15))),
        hidden_zero_point=ZeroPoint(-hidden.zero_point if projected else hidden.zero_point),
        state_zero_point=state.zero_point,
        cell_log2=cell_log2,
        cell_clip=_clip(node.options["cell_clip"], cell.scale, _LOW16, _HIGH16),
        projection_clip=_clip(node.options["proj_clip"], node.outputs[0].scale, -128, 127),
        cells=sizes.cells,
        outputs=sizes.outputs,
        time_major=time_major,
    )


def _clip(real: float, scale: np.float32, low: int, high: int) -> int:
    """Return a clip in codes, cut towards zero; 0 for none."""
    return int(min(max(np.float32(real) / scale, np.float32(low)), np.float32(high))) if real > 0 else 0


def _product(
    node: Node,
    arithmetic: Arithmetic,
    x: Operand,
    at: tuple[int, ...],
    gates: tuple[int, ...],
    scales: dict[int, np.float32],
    *,
    biased: bool,
) -> Product:
    """Join all gates side by side; weight scale * input scale / gate scale in float32, left to right."""
    weights = np.concatenate([node.constant(at[g]) for g in gates])
    bias = np.zeros(len(weights), np.int64)
    if biased:
        bias += np.concatenate([node.constant(SINGLE.biases[g]) for g in gates])
    bias -= x.zero_point * weights.sum(axis=1, dtype=np.int64)
    real = [np.float64(node.input(at[g]).scale * x.scale / scales[g]) for g in gates]
    return Product(
        weights.T.astype(np.float64), bias, arithmetic.requantize(np.repeat(real, len(weights) // len(gates)))
    )


def _projection(node: Node, arithmetic: Arithmetic, hidden: Operand, state: Operand) -> Product:
    """Bind the projection; its zero point's share has the sign of the negated zero point of the hidden codes."""
    weights = node.constant(SINGLE.projection)
    bias = hidden.zero_point * weights.sum(axis=1, dtype=np.int64)
    if node.optional(SINGLE.projection_bias) is not None:
        bias = bias + node.constant(SINGLE.projection_bias)
    real = np.float64(node.input(SINGLE.projection).scale * hidden.scale / state.scale)
    return Product(weights.T.astype(np.float64), bias, arithmetic.requantize(real))


def _peepholes(node: Node, sizes: Sizes, scales: dict[int, np.float32], cell_log2: int) -> dict[int, Peephole]:
    """Compute cell scale * weight scale / gate scale in float64, rounded to float32."""
    if node.optional(SINGLE.peepholes[2]) is None:
        return {}
    if sizes.outputs > sizes.cells:
        raise UndefinedResultError("VectorBatchVectorCwiseProductAccumulate", "reads beyond the peephole weights")
    peepholes = {}
    for gate in sizes.gates:
        position = SINGLE.peephole(gate)
        if position is None:
            continue
        weights = node.input(position)
        real = np.float32(2.0**cell_log2 * float(weights.scale) / float(scales[gate]))
        peepholes[gate] = Peephole(node.constant(position), quantize_multiplier(float(real)))
    return peepholes


def _layer_norm(node: Node, gate: int) -> LayerNorm:
    weights = node.input(SINGLE.norms[gate])
    multiplier = quantize_multiplier(float(weights.scale))
    guard = max(1, int(np.float32(10000) * weights.scale))
    return LayerNorm(node.constant(SINGLE.norms[gate]), node.constant(SINGLE.biases[gate]), multiplier, guard)


def run(data: OpData, x: Array, first_state: Array, first_cell: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16. Outputs, then the new output state and cell state; `x` is (N, T, I) or (T, N, I)."""
    steps = x if data.time_major else x.transpose(1, 0, 2)
    state = np.array(first_state).reshape(steps.shape[1], data.outputs)
    cell = np.array(first_cell).reshape(steps.shape[1], data.cells)
    outputs = np.empty((*steps.shape[:2], data.outputs), np.int8)
    if data.loop is None:
        from_input = data.from_input(steps) if x.size else np.zeros((*steps.shape[:2], 0), np.int32)
        for t in range(len(steps)):
            state = outputs[t] = _step(data, from_input[t], state, cell)
    else:
        rows = np.ascontiguousarray(steps)
        from_input = np.zeros((*steps.shape[:2], data.from_input.weights.shape[1]), np.int32)
        if x.size:
            multiply(rows.reshape(-1, rows.shape[2]), *data.entry, from_input.reshape(-1, from_input.shape[2]))
        run_steps(from_input, curves(15 + data.cell_log2), *data.loop, state, cell, outputs)
        state = outputs[-1] if len(outputs) else state
    arranged = outputs if data.time_major else np.ascontiguousarray(outputs.transpose(1, 0, 2))
    return arranged, state.reshape(first_state.shape).copy(), cell.reshape(first_cell.shape)


def _loop(data: OpData) -> tuple[Any, ...] | None:
    """Return the constants of `run_steps` after `shapes`; None if products are not scaled as it scales them."""
    products = [data.from_state] if data.projection is None else [data.from_state, data.projection]
    if any(type(product.stage) is not DoubleRounding for product in (data.from_input, *products)):
        return None
    from_state, *projection = [_scaled_product(product) for product in products]
    roles = tuple(data.gates.index(gate) if gate in data.gates else -1 for gate in (INPUT, FORGET, CELL, OUTPUT))
    peepholes = [data.peepholes.get(gate) for gate in data.gates]
    norms = [data.layer_norms.get(gate) for gate in data.gates]
    absent = np.zeros(0, np.int16)
    return (
        from_state,
        projection[0] if projection else tuple(values[:0] for values in from_state),
        roles,
        tuple(absent if p is None else np.array(p.weights) for p in peepholes),
        np.array([(0, 0) if p is None else p.multiplier for p in peepholes], np.int64),
        tuple(absent if n is None else np.array(n.weights) for n in norms),
        tuple(np.zeros(0, np.int32) if n is None else np.array(n.bias) for n in norms),
        np.array([(0, 0, 0) if n is None else (*n.multiplier, n.guard) for n in norms], np.int64),
        data.time_major,
        (data.cell_log2, data.cell_clip, *data.hidden, int(data.hidden_zero_point)),
        (int(data.state_zero_point), data.projection_clip),
    )


def _scaled_product(product: Product) -> tuple[Array, ...]:
    """Return the weights (outputs, inputs) as int16, bias, and the constants of the stage for each output."""
    stage: Any = product.stage
    constants = stage.constants(stage.mantissa, stage.shift)
    count = product.weights.shape[1]
    weights = np.ascontiguousarray(product.weights.T.astype(np.int16))
    return weights, product.bias, *(np.ascontiguousarray(np.broadcast_to(values, count)) for values in constants)


def _step(data: OpData, from_input: Array, state: Array, cell: Array) -> Array:
    """Return the new output state of all batches; `cell` is changed in place. Source: LstmStepInteger8x8_16."""
    entered = np.clip(from_input, _LOW16, _HIGH16)
    sums = np.clip(entered + data.from_state(state), _LOW16, _HIGH16).astype(np.int16)
    gates = dict(zip(data.gates, np.split(sums, len(data.gates), axis=1), strict=True))
    ready = {gate: _activate(data, gate, gates[gate], cell) for gate in data.gates if gate != OUTPUT}
    input_gate = ready.get(INPUT)
    if input_gate is None:
        input_gate = np.int16(32767) - ready[FORGET]
    update_cell(ready[FORGET], input_gate, ready[CELL], data.cell_log2, data.cell_clip, cell)
    hidden = np.empty(cell.shape, np.int8)
    hide(
        _activate(data, OUTPUT, gates[OUTPUT], cell),
        cell,
        curves(15 + data.cell_log2)[2],
        *data.hidden,
        int(data.hidden_zero_point),
        hidden,
    )
    if data.projection is None:
        return hidden
    projected = np.clip(data.projection(hidden) + data.state_zero_point, -128, 127)
    if data.projection_clip > 0:
        projected = np.maximum(np.minimum(projected, data.projection_clip), -data.projection_clip)
    return np.asarray(projected.astype(np.int8))


def _activate(data: OpData, gate: int, sums: Array, cell: Array) -> Array:
    """Apply peephole, layer norm, then the sigmoid (tanh for the cell gate), Q3.12 -> Q0.15."""
    out = np.array(sums)
    peephole = data.peepholes.get(gate)
    if peephole is not None:
        # The source walks outputs, not cells, along both arrays: across batches where time comes first.
        rows = (1, -1) if data.time_major else cell.shape
        count = data.outputs * (len(cell) if data.time_major else 1)
        add_peephole(cell.reshape(rows), peephole.weights, *peephole.multiplier, data.outputs, count, out.reshape(rows))
    norm = data.layer_norms.get(gate)
    if norm is not None:
        normalise(out, norm.weights, norm.bias, *norm.multiplier, norm.guard)
    look_up(out, curves(15 + data.cell_log2)[1 if gate == CELL else 0])
    return out
