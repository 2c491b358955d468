"""The LSTM cell on 8-bit activations, with a 16-bit cell state.

The steps of the LSTM cell on 8-bit activations, compiled: what a gate goes through, and the loop over time.

Source: LiteRT 2.3 lstm_eval.cc LstmStepInteger8x8_16; portable_tensor_utils.cc.

Gates add two products, each scaled to Q3.12 and saturated to int16; where layer normalisation is there they are scaled
to the intermediates' scales instead. The five intermediates are the four gates and the hidden state.
Source: LiteRT 2.3 unidirectional_sequence_lstm.cc and lstm.cc PopulateQuantizedLstmParams8x8_16,
PopulatePrecomputedZPTimesWeightsWithBias; lstm_eval.cc LstmStepInteger8x8_16; portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps, matmul
from tflq.engine.kernels.families.recurrent.lstm_operands import CELL, FORGET, INPUT, OUTPUT, SINGLE, LstmSizes
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.elementary import inverse_sqrt, logistic_into, tanh_into
from tflq.engine.numerics.multiplier import (
    Multiplier,
    check_log2,
    multiply_double_rounding,
    quantize_multiplier,
    round_twice,
)
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, wrap, wrap_int32
from tflq.engine.numerics.stage_roundings import DoubleRounding
from tflq.engine.numerics.stages import OutputStage
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@in_pieces(8, out="r", cell="r")
@compiled
def add_peephole(cell: Array, weights: Array, mantissa: Int, shift: Int, period: Int, count: Int, out: Array) -> None:
    """Add weights * cell over the first `count` elements of each row to `out`, weights repeating after `period`.

    Prepare guarantees: `cell` and `out` have the same shape, `count` elements a row at least, `weights` has `period`
    elements at least.
    """
    for r in range(out.shape[0]):
        for i in range(count):
            product = multiply_double_rounding(np.int64(weights[i % period]) * np.int64(cell[r, i]), mantissa, shift)
            out[r, i] = clamp(product + np.int64(out[r, i]), -32768, 32767)


@compiled
def _divide_towards_zero(a: Int, b: Int) -> Int:
    """Return a / b as C divides, b > 0."""
    return a // b if a >= 0 else -((-a) // b)


@in_pieces(8, gate="r")
@compiled
def normalise(gate: Array, weights: Array, bias: Array, mantissa: Int, shift: Int, guard: Int) -> None:
    """Source: PortableApplyLayerNorm. Rounding: quotients towards zero, products twice. Overflow: wraps int32.

    Prepare guarantees: `weights` and `bias` have an element for every cell.
    """
    batches, cells = gate.shape
    for b in range(batches):
        total, squares = np.int64(0), np.int64(0)
        for i in range(cells):
            value = np.int64(gate[b, i])
            total += value
            squares += value * value
        mean = _divide_towards_zero(total * np.int64(1024), cells)
        variance = squares * np.int64((1 << 20) // cells) - mean * mean
        spread = wrap_int32(_divide_towards_zero(variance, 1 << 20))
        if spread < 1:
            spread = guard
        root, right = inverse_sqrt(spread)
        for i in range(cells):
            centred = wrap_int32(np.int64(1024) * np.int64(gate[b, i]) - mean)
            scaled = multiply_double_rounding(centred, root, -right)
            weighed = wrap_int32(scaled * np.int64(weights[i]) + np.int64(bias[i]))
            rounded = _divide_towards_zero(weighed + np.int64(512 if weighed > 0 else -512), 1024)
            gate[b, i] = clamp(multiply_double_rounding(rounded, mantissa, shift + 12), -32768, 32767)


@cache
def curves(cell_bits: int) -> tuple[Array, Array, Array]:
    """Return sigmoid and tanh of a gate and tanh of the cell state, each for the int16 codes from -32768 on.

    `cell_bits` are the integer bits of the cell state; gates have 3.
    """
    codes = np.arange(-32768, 32768)
    tables = np.empty((3, codes.size), np.int16)
    logistic_into(codes, 3, 16, tables[0])
    tanh_into(codes, 3, 16, tables[1])
    tanh_into(codes, cell_bits, 16, tables[2])
    return tables[0], tables[1], tables[2]


@in_pieces(2, gate="r")
@compiled
def look_up(gate: Array, curve: Array) -> None:
    """Apply a function of int16 in place.

    The caller guarantees: `gate` is int16, and `curve` has a value for each of its codes.
    """
    for b in range(gate.shape[0]):
        for i in range(gate.shape[1]):
            gate[b, i] = curve[np.int64(gate[b, i]) + 32768]


@in_pieces(4, cell="r", forget="r", input_gate="r", update="r")
@compiled
def update_cell(forget: Array, input_gate: Array, update: Array, cell_log2: Int, clip: Int, cell: Array) -> None:
    """Compute cell = forget * cell + input_gate * update, half away. Source: UpdateLstmCellInteger. Wraps int16.

    Prepare guarantees: all arrays are (batch, cells).
    """
    for b in range(cell.shape[0]):
        for i in range(cell.shape[1]):
            kept = wrap(divide_by_pot_half_away(np.int64(forget[b, i]) * np.int64(cell[b, i]), 15), 16)
            new = divide_by_pot_half_away(np.int64(input_gate[b, i]) * np.int64(update[b, i]), 30 + cell_log2)
            total = clamp(kept + wrap(new, 16), -32768, 32767)
            cell[b, i] = max(min(total, clip), -clip) if clip > 0 else total


@in_pieces(8, cell="r", gate="r", hidden="r")
@compiled
def hide(gate: Array, cell: Array, curve: Array, mantissa: Int, shift: Int, zero_point: Int, hidden: Array) -> None:
    """Compute hidden = gate * tanh(cell), with `curve` as tanh. Source: CalculateLstmOutputInteger8x8_16,
    PortableCwiseMul.

    Prepare guarantees: all arrays are (batch, cells), and `curve` has a value for each int16.
    """
    for b in range(cell.shape[0]):
        for i in range(cell.shape[1]):
            product = np.int64(gate[b, i]) * np.int64(curve[np.int64(cell[b, i]) + 32768])
            hidden[b, i] = clamp(multiply_double_rounding(product, mantissa, shift) + zero_point, -128, 127)


@in_pieces(lambda x, weights, *_: x.shape[0] * weights.size, x="r", out="r")
@compiled
def multiply(
    x: Array,
    weights: Array,
    bias: Array,
    mantissa: Array,
    left: Array,
    offset: Array,
    below: Array,
    right: Array,
    out: Array,
) -> None:
    """Compute out[r, n] = x[r] . weights[n] + bias[n], as int32, scaled by DoubleRounding's constants.

    The caller guarantees: `x` is (R, K), `weights` (N, K), `out` (R, N), and everything else has N elements.
    """
    for r in range(out.shape[0]):
        row = x[r]
        for n in range(out.shape[1]):
            factors, total = weights[n], np.int32(0)
            for k in range(row.size):
                total += np.int32(row[k]) * np.int32(factors[k])
            shifted = wrap_int32(wrap_int32(np.int64(total) + bias[n]) << left[n])
            out[r, n] = wrap_int32(round_twice(shifted * np.int64(mantissa[n]), offset[n], below[n], right[n]))


@compiled
def finish_gate(gate: Int, curve: Array, constants: StepConstants, cell: Array, sums: Array) -> None:
    """Apply peephole, layer norm, then `curve` to sums (batch, cells) in place.

    Q3.12 -> Q0.15. Prepare guarantees: vectors have an element for every cell, or none; there are at most as many
    outputs as cells where there is a peephole.
    """
    peephole, norm, outputs = constants.peepholes[gate], constants.norms[gate], constants.outputs
    if peephole.size > 0:
        mantissa, shift = constants.peephole_scales[gate, 0], constants.peephole_scales[gate, 1]
        if constants.across:
            count = outputs * cell.shape[0]
            add_peephole(cell.reshape((1, -1)), peephole, mantissa, shift, outputs, count, sums.reshape((1, -1)))
        else:
            add_peephole(cell, peephole, mantissa, shift, outputs, outputs, sums)
    if norm.size > 0:
        scales = constants.norm_scales
        normalise(sums, norm, constants.norm_biases[gate], scales[gate, 0], scales[gate, 1], scales[gate, 2])
    look_up(sums, curve)


class StepConstants(NamedTuple):
    """Constants of `step_into`. Gates have numbers; what there is for each of them is in their order, empty if absent.

    Read by compiled loops.
    """

    gates: tuple[int, ...]  # input, forget, cell and output gate; -1 for an input gate of 1 - forget gate
    peepholes: tuple[Array, ...]
    peephole_scales: Array  # mantissas and shifts
    norms: tuple[Array, ...]
    norm_biases: tuple[Array, ...]
    norm_scales: Array  # mantissas, shifts and guards
    across: bool  # whether peepholes walk across batches
    outputs: int
    cell_log2: int
    clip: int  # LSB of cell state; 0: none
    hidden: Multiplier  # of the hidden state
    zero_point: int


@compiled
def step_into(entered: Array, scaled: Array, shapes: Any, constants: StepConstants, cell: Array, hidden: Array) -> None:
    """Run one step from both scaled products (B, gates * C), int32: update `cell` (B, C), fill `hidden` (B, C).

    `shapes` are the tables of `curves`. Overflow: as LstmStepInteger8x8_16, wraps int32.

    Prepare guarantees: these shapes, and what `finish_gate` asks for.
    """
    batches, cells = cell.shape
    input_gate, forget, update, output_gate = constants.gates
    gates = np.empty((entered.shape[1] // max(1, cells), batches, cells), np.int16)
    entering, last = np.empty((batches, cells), np.int16), gates.shape[0] - 1
    for g in range(gates.shape[0]):
        for b in range(batches):
            for c in range(cells):
                total = clamp(np.int64(entered[b, g * cells + c]), -32768, 32767)
                total = wrap_int32(total + np.int64(scaled[b, g * cells + c]))
                gates[g, b, c] = clamp(total, -32768, 32767)
    for number in range(gates.shape[0]):  # the output gate comes last, and sees the new cell state
        g = output_gate if number == last else last if number == output_gate else number
        if number == last:
            for b in range(batches):
                for c in range(cells):
                    entering[b, c] = gates[input_gate, b, c] if input_gate >= 0 else 32767 - gates[forget, b, c]
            update_cell(gates[forget], entering, gates[update], constants.cell_log2, constants.clip, cell)
        finish_gate(g, shapes[1 if g == update else 0], constants, cell, gates[g])
    mantissa, shift = constants.hidden
    hide(gates[output_gate], cell, shapes[2], mantissa, shift, constants.zero_point, hidden)


@compiled
def project_into(projected: Array, zero_point: Int, clip: Int, state: Array) -> None:
    """Fill `state` (B, O) with the codes of scaled products, int32; a `clip` of 0 is none.

    The caller guarantees: both arrays have the same shape.
    """
    for b in range(state.shape[0]):
        for o in range(state.shape[1]):
            code = clamp(wrap_int32(np.int64(projected[b, o]) + zero_point), -128, 127)
            state[b, o] = max(min(code, clip), -clip) if clip > 0 else code


@in_steps(lambda from_input, from_state, *_: len(from_input) * from_input.shape[1] * (from_state[0].size + 1000))
@compiled
def run_steps(
    from_input: Array,
    from_state: Any,
    projection: Any,
    shapes: Any,
    constants: StepConstants,
    projecting: Any,
    state: Array,
    cell: Array,
    outputs: Array,
) -> None:
    """Run all steps: fill `outputs` (T, B, O), update the cell state (B, C). `from_input` is (T, B, gates * C).

    `from_state` and `projection` are arguments of `multiply`, `projection` with no rows if there is none. `shapes`
    and `constants` are those of `step_into`; `projecting` the output state's zero point and clip.

    Prepare guarantees: these shapes.
    """
    batches, cells = cell.shape
    scaled = np.empty((batches, from_input.shape[2]), np.int32)
    hidden = np.empty((batches, cells), np.int8)
    projected = np.empty((batches, outputs.shape[2]), np.int32)
    present = state
    for t in range(from_input.shape[0]):
        multiply(present, *from_state, scaled)
        step_into(from_input[t], scaled, shapes, constants, cell, hidden)
        following = outputs[t]
        if projection[0].shape[0] > 0:
            multiply(hidden, *projection, projected)
            project_into(projected, projecting[0], projecting[1], following)
        else:
            for b in range(batches):
                for o in range(cells):
                    following[b, o] = hidden[b, o]
        present = following


_LOW16, _HIGH16 = -32768, 32767


@dataclass(frozen=True, slots=True, eq=False)
class GateProduct:
    """A matrix product scaled to a gate's Q3.12, or to the output state: all gates side by side."""

    weights: Array  # float64, (inputs, outputs): integers, so that products and sums below 2**53 are exact
    bias: Array  # int64, the zero point's share included
    stage: OutputStage
    scaled: tuple[Array, ...] | None = field(init=False, repr=False)  # for `multiply`; None if it scales otherwise

    def __post_init__(self) -> None:
        object.__setattr__(self, "scaled", _scaled_product(self))

    def into(self, x: Array, out: Array) -> None:
        """Fill `out`, int32, with the scaled accumulators of int8 `x`. Overflow: the accumulator wraps int32."""
        if self.scaled is not None:
            multiply(x, *self.scaled, out)
        else:
            sums = matmul(x.astype(np.float64), self.weights).astype(np.int64) + self.bias
            out[...] = self.stage(sums.astype(np.int32))


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
    from_input: GateProduct
    from_state: GateProduct
    peepholes: dict[int, Peephole]
    layer_norms: dict[int, LayerNorm]
    projection: GateProduct | None
    hidden: Multiplier  # of output gate times tanh(cell) -> LSB of hidden state
    hidden_zero_point: ZeroPoint  # LSB of hidden state; negated where a projection follows
    state_zero_point: ZeroPoint  # LSB of output state
    cell_log2: int  # the cell state's scale is 2 ** this
    cell_clip: int  # LSB of cell state; 0: none
    projection_clip: int  # LSB of output state; 0: none
    cells: int
    outputs: int
    time_major: bool
    constants: StepConstants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constants", _step_constants(self))


def bind(node: Node, arithmetic: Arithmetic, sizes: LstmSizes, *, time_major: bool) -> OpData:
    """Return the constants of a node whose shapes were checked. Float32 scales are widened for the multipliers."""
    node.check(len(node.intermediates) == 5, "intermediates", expected=5, got=len(node.intermediates))
    return _data(node, arithmetic, sizes, time_major)


def _data(node: Node, arithmetic: Arithmetic, sizes: LstmSizes, time_major: bool) -> OpData:
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
) -> GateProduct:
    """Join all gates side by side; weight scale * input scale / gate scale in float32, left to right."""
    weights = np.concatenate([node.constant(at[g]) for g in gates])
    bias = np.zeros(len(weights), np.int64)
    if biased:
        bias += np.concatenate([node.constant(SINGLE.biases[g]) for g in gates])
    bias -= x.zero_point * weights.sum(axis=1, dtype=np.int64)
    real = [np.float64(node.input(at[g]).scale * x.scale / scales[g]) for g in gates]
    return GateProduct(
        weights.T.astype(np.float64), bias, arithmetic.requantize(np.repeat(real, len(weights) // len(gates)))
    )


def _projection(node: Node, arithmetic: Arithmetic, hidden: Operand, state: Operand) -> GateProduct:
    """Bind the projection; its zero point's share has the sign of the negated zero point of the hidden codes."""
    weights = node.constant(SINGLE.projection)
    bias = hidden.zero_point * weights.sum(axis=1, dtype=np.int64)
    if node.optional(SINGLE.projection_bias) is not None:
        bias = bias + node.constant(SINGLE.projection_bias)
    real = np.float64(node.input(SINGLE.projection).scale * hidden.scale / state.scale)
    return GateProduct(weights.T.astype(np.float64), bias, arithmetic.requantize(real))


def _peepholes(node: Node, sizes: LstmSizes, scales: dict[int, np.float32], cell_log2: int) -> dict[int, Peephole]:
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
    from_input = np.zeros((*steps.shape[:2], data.from_input.weights.shape[1]), np.int32)
    if x.size:
        rows = np.ascontiguousarray(steps).reshape(-1, steps.shape[2])
        data.from_input.into(rows, from_input.reshape(-1, from_input.shape[2]))
    shapes, projecting = curves(15 + data.cell_log2), (int(data.state_zero_point), data.projection_clip)
    recurrent, projection = data.from_state.scaled, data.projection
    if recurrent is not None and (projection is None or projection.scaled is not None):
        none = tuple(values[:0] for values in recurrent)
        after = none if projection is None else projection.scaled
        run_steps(from_input, recurrent, after, shapes, data.constants, projecting, state, cell, outputs)
        state = outputs[-1] if len(outputs) else state
    else:
        scaled, hidden = np.empty((len(cell), from_input.shape[2]), np.int32), np.empty(cell.shape, np.int8)
        projected = np.empty(state.shape, np.int32)
        for entered, following in zip(from_input, outputs, strict=True):
            data.from_state.into(state, scaled)
            step_into(entered, scaled, shapes, data.constants, cell, hidden)
            if projection is None:
                following[...] = hidden
            else:
                projection.into(hidden, projected)
                project_into(projected, *projecting, following)
            state = following
    arranged = outputs if data.time_major else np.ascontiguousarray(outputs.transpose(1, 0, 2))
    return arranged, state.reshape(first_state.shape).copy(), cell.reshape(first_cell.shape)


def _step_constants(data: OpData) -> StepConstants:
    peepholes = [data.peepholes.get(gate) for gate in data.gates]
    norms = [data.layer_norms.get(gate) for gate in data.gates]
    absent = np.zeros(0, np.int16)
    return StepConstants(
        gates=(data.gates.index(INPUT) if INPUT in data.gates else -1, *map(data.gates.index, (FORGET, CELL, OUTPUT))),
        peepholes=tuple(absent if p is None else np.array(p.weights) for p in peepholes),
        peephole_scales=np.array([(0, 0) if p is None else p.multiplier for p in peepholes], np.int64),
        norms=tuple(absent if n is None else np.array(n.weights) for n in norms),
        norm_biases=tuple(np.zeros(0, np.int32) if n is None else np.array(n.bias) for n in norms),
        norm_scales=np.array([(0, 0, 0) if n is None else (*n.multiplier, n.guard) for n in norms], np.int64),
        across=data.time_major,
        outputs=data.outputs,
        cell_log2=data.cell_log2,
        clip=data.cell_clip,
        hidden=data.hidden,
        zero_point=int(data.hidden_zero_point),
    )


def _scaled_product(product: GateProduct) -> tuple[Array, ...] | None:
    """Return the weights (outputs, inputs) as int16, bias, and the constants of the stage for each output.

    None for a stage that `multiply` does not compute.
    """
    stage: Any = product.stage
    if type(stage) is not DoubleRounding:
        return None
    constants = stage.constants(stage.mantissa, stage.shift)
    count = product.weights.shape[1]
    weights = np.ascontiguousarray(product.weights.T.astype(np.int16))
    return weights, product.bias, *(np.ascontiguousarray(np.broadcast_to(values, count)) for values in constants)
