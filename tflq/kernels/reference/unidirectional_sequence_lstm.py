"""UNIDIRECTIONAL_SEQUENCE_LSTM with 8-bit activations and a 16-bit cell.

| operand           | position   | shape   | types       | quantization                                       |
|-------------------|------------|---------|-------------|----------------------------------------------------|
| x                 | 0          | N, T, I | int8        | per tensor; T, N, I with time_major                |
| input weights     | 1, 2, 3, 4 | C, I    | int8        | symmetric; gates: input, forget, cell, output      |
| recurrent weights | 5, 6, 7, 8 | C, O    | int8        | symmetric; the same gates                          |
| peepholes         | 9, 10, 11  | C       | int16       | symmetric; gates: input, forget, output            |
| biases            | 12 .. 15   | C       | int32       |                                                    |
| projection, bias  | 16, 17     | O, C; O | int8, int32 | symmetric                                          |
| output state      | 18         | N * O   | int8        | per tensor; variable                               |
| cell state        | 19         | N * C   | int16       | power of two; variable                             |
| layer norms       | 20 .. 23   | C       | int16       | per tensor; gates: input, forget, cell, output     |
| y                 |            | N, T, O | int8        | per tensor                                         |

Without positions 1 and 5 the input gate is 1 - forget gate (CIFG). Peepholes, projection and layer norms may be absent.
Five intermediates: the four gates' scales where layer norms are there, and the hidden state's.
Options: cell_clip, proj_clip, time_major.
Source: LiteRT 2.3, unidirectional_sequence_lstm.cc PopulateQuantizedLstmParams8x8_16,
PopulatePrecomputedZPTimesWeightsWithBias; lstm_eval.cc LstmStepInteger8x8_16; portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Array, Kernel, Node, Operand, Prepared, Shape
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.compiled import Int, compiled
from tflq.numerics.elementary import inverse_sqrt, logistic, tanh
from tflq.numerics.multiplier import multiply_double_rounding, quantize_multiplier
from tflq.numerics.rounding import clamp, divide_by_pot_half_away, wrap, wrap_int32
from tflq.numerics.scaling import checked_log2
from tflq.numerics.stages import OutputStage

INPUT, FORGET, CELL, OUTPUT = range(4)
#: Position of the input weights of gate INPUT; the others follow.
INPUT_WEIGHTS, RECURRENT_WEIGHTS, PEEPHOLES, BIASES, LAYER_NORMS = 1, 5, 9, 12, 20
PROJECTION, PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
PEEPHOLE_OF = {INPUT: 9, FORGET: 10, OUTPUT: 11}

_LOW16, _HIGH16 = -32768, 32767


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A matrix product scaled to a gate's Q3.12, or to the output state: all gates side by side."""

    weights: Array  # float64, (inputs, outputs): integers, so that products and sums below 2**53 are exact
    bias: Array  # int64, the zero point's share included
    stage: OutputStage

    def __call__(self, x: Array) -> Array:
        """Scaled int32 accumulators of int8 `x`. Overflow: the accumulator wraps int32."""
        sums = (x.astype(np.float64) @ self.weights).astype(np.int64) + self.bias
        return np.asarray(self.stage(sums.astype(np.int32)))


@dataclass(frozen=True, slots=True, eq=False)
class Peephole:
    """Products of the cell state with one weight a cell."""

    weights: Array  # int16
    mantissa: int  # Q31
    shift: int  # to the left


@dataclass(frozen=True, slots=True, eq=False)
class LayerNorm:
    """Normalisation of a gate over its cells."""

    weights: Array  # int16
    bias: Array  # int32
    mantissa: int  # of the coefficients' scale, Q31
    shift: int  # to the left
    guard: int  # stands in for a variance below 1


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a step. Gates are in the order input (absent with CIFG), forget, cell, output."""

    gates: tuple[int, ...]
    from_input: Product
    from_state: Product
    peepholes: dict[int, Peephole]
    layer_norms: dict[int, LayerNorm]
    projection: Product | None
    hidden: tuple[int, int]  # mantissa and shift of output gate times tanh(cell) -> LSB of hidden state
    hidden_zero_point: int  # LSB of hidden state; negated where a projection follows
    state_zero_point: int  # LSB of output state
    cell_log2: int  # the cell state's scale is 2 ** this
    cell_clip: int  # LSB of cell state; 0: none
    projection_clip: int  # LSB of output state; 0: none
    cells: int
    outputs: int
    time_major: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """All scales are float32 expressions, widened for the multipliers."""
    x = node.input(0)
    node.check(len(x.shape) == 3, "rank", x, expected=3, got=len(x.shape))
    cells, outputs = _sizes(node)
    time_major = bool(node.options["time_major"])
    batches = x.shape[1] if time_major else x.shape[0]
    for position, size in ((OUTPUT_STATE, batches * outputs), (CELL_STATE, batches * cells)):
        state = node.input(position)
        node.check(state.is_variable and prod(state.shape) == size, "must be a variable of that size", state,
                   expected=size, got=list(state.shape))  # fmt: skip
    shape = (*x.shape[:2], outputs)
    return Prepared((shape,), _data(node, arithmetic, cells, outputs), evaluate, (OUTPUT_STATE, CELL_STATE))


def _sizes(node: Node) -> tuple[int, int]:
    """Cells and outputs, all weights' shapes checked against them."""
    inputs = node.input(0).shape[-1]
    cells = node.input(INPUT_WEIGHTS + OUTPUT).shape[0]
    recurrent = node.input(RECURRENT_WEIGHTS + OUTPUT)
    node.check(len(recurrent.shape) == 2, "rank", recurrent, expected=2, got=len(recurrent.shape))
    outputs = recurrent.shape[1]
    wanted: dict[int, Shape] = dict.fromkeys((*range(PEEPHOLES, PEEPHOLES + 3), *range(BIASES, BIASES + 4)), (cells,))
    wanted |= dict.fromkeys(range(LAYER_NORMS, LAYER_NORMS + 4), (cells,))
    wanted |= dict.fromkeys(range(INPUT_WEIGHTS, INPUT_WEIGHTS + 4), (cells, inputs))
    wanted |= dict.fromkeys(range(RECURRENT_WEIGHTS, RECURRENT_WEIGHTS + 4), (cells, outputs))
    wanted |= {PROJECTION: (outputs, cells), PROJECTION_BIAS: (outputs,)}
    for position, shape in wanted.items():
        operand = node.optional(position)
        if operand is not None:
            node.check(operand.shape == shape, "shape", operand, expected=list(shape), got=list(operand.shape))
    _check_groups(node)
    if node.optional(PROJECTION) is None:
        node.check(outputs == cells, "without a projection, outputs and cells must be as many", recurrent)
    return cells, outputs


def _check_groups(node: Node) -> None:
    """Operands that are there together or not at all."""
    present = [node.optional(p) is not None for p in range(24)]
    cifg = not present[INPUT_WEIGHTS]
    node.check(present[RECURRENT_WEIGHTS] != cifg, "input gate weights: both or none")
    node.check(present[BIASES] != cifg, "an input gate's bias comes with its weights, and only then")
    peephole = present[PEEPHOLES + 2]
    node.check(present[PEEPHOLES + 1] == peephole, "peephole weights: all or none")
    node.check(present[PEEPHOLES] == (peephole and not cifg), "peephole weights: all or none")
    norm = present[LAYER_NORMS + FORGET]
    node.check(all(present[LAYER_NORMS + g] == norm for g in (CELL, OUTPUT)), "layer norms: all or none")
    node.check(present[LAYER_NORMS] == (norm and not cifg), "layer norms: all or none")
    node.check(present[PROJECTION] or not present[PROJECTION_BIAS], "projection bias without projection weights")
    node.check(len(node.intermediates) == 5, "intermediates", expected=5, got=len(node.intermediates))


def _data(node: Node, arithmetic: Arithmetic, cells: int, outputs: int) -> OpData:
    x, state, cell = node.input(0), node.input(OUTPUT_STATE), node.input(CELL_STATE)
    gates = (FORGET, CELL, OUTPUT) if node.optional(INPUT_WEIGHTS) is None else (INPUT, FORGET, CELL, OUTPUT)
    norm = node.optional(LAYER_NORMS + FORGET) is not None
    scales = {g: node.intermediates[g].scale if norm else np.float32(2.0**-12) for g in gates}
    cell_log2, is_pot = checked_log2(cell.scale)
    node.check(is_pot, "scale must be a power of two", cell, got=cell.scale)
    if not 0 <= 15 + cell_log2 <= 6:
        raise UndefinedResultError("ApplyTanh", f"{15 + cell_log2} integer bits, for a cell scale of 2**{cell_log2}")
    hidden = node.intermediates[4]
    projected = node.optional(PROJECTION) is not None
    node.check(hidden.is_quantized, "is not quantized", hidden)
    return OpData(
        gates=gates,
        from_input=_product(node, arithmetic, x, INPUT_WEIGHTS, gates, scales, biased=not norm),
        from_state=_product(node, arithmetic, state, RECURRENT_WEIGHTS, gates, scales, biased=False),
        peepholes=_peepholes(node, gates, scales, cell_log2, cells, outputs),
        layer_norms={g: _layer_norm(node, g) for g in gates} if norm else {},
        projection=_projection(node, arithmetic, hidden, state) if projected else None,
        hidden=quantize_multiplier(float(np.float32(2.0**-15 / float(hidden.scale) * 2.0**-15))),
        hidden_zero_point=-hidden.zero_point if projected else hidden.zero_point,
        state_zero_point=state.zero_point,
        cell_log2=cell_log2,
        cell_clip=_clip(node.options["cell_clip"], cell.scale, _LOW16, _HIGH16),
        projection_clip=_clip(node.options["proj_clip"], node.outputs[0].scale, -128, 127),
        cells=cells,
        outputs=outputs,
        time_major=bool(node.options["time_major"]),
    )


def _clip(real: float, scale: np.float32, low: int, high: int) -> int:
    """A clip in codes, cut towards zero; 0 for none."""
    return int(min(max(np.float32(real) / scale, np.float32(low)), np.float32(high))) if real > 0 else 0


def _product(
    node: Node, arithmetic: Arithmetic, x: Operand, first: int, gates: tuple[int, ...], scales: dict[int, np.float32],
    *, biased: bool,
) -> Product:  # fmt: skip
    """All gates side by side; weight scale * input scale / gate scale in float32, left to right."""
    weights = np.concatenate([node.constant(first + g) for g in gates])
    bias = np.zeros(len(weights), np.int64)
    if biased:
        bias += np.concatenate([node.constant(BIASES + g) for g in gates])
    bias -= x.zero_point * weights.sum(axis=1, dtype=np.int64)
    real = [np.float64(node.input(first + g).scale * x.scale / scales[g]) for g in gates]
    return Product(
        weights.T.astype(np.float64), bias, arithmetic.requantize(np.repeat(real, len(weights) // len(gates)))
    )


def _projection(node: Node, arithmetic: Arithmetic, hidden: Operand, state: Operand) -> Product:
    """The zero point's share has the sign that fits the negated zero point of the hidden codes."""
    weights = node.constant(PROJECTION)
    bias = hidden.zero_point * weights.sum(axis=1, dtype=np.int64)
    if node.optional(PROJECTION_BIAS) is not None:
        bias = bias + node.constant(PROJECTION_BIAS)
    real = np.float64(node.input(PROJECTION).scale * hidden.scale / state.scale)
    return Product(weights.T.astype(np.float64), bias, arithmetic.requantize(real))


def _peepholes(
    node: Node, gates: tuple[int, ...], scales: dict[int, np.float32], cell_log2: int, cells: int, outputs: int
) -> dict[int, Peephole]:  # fmt: skip
    """cell scale * weight scale / gate scale in float64, rounded to float32."""
    if node.optional(PEEPHOLES + 2) is None:
        return {}
    if outputs > cells:
        raise UndefinedResultError("VectorBatchVectorCwiseProductAccumulate", "reads beyond the peephole weights")
    found = {}
    for gate in (g for g in gates if g in PEEPHOLE_OF):
        weights = node.input(PEEPHOLE_OF[gate])
        real = np.float32(2.0**cell_log2 * float(weights.scale) / float(scales[gate]))
        found[gate] = Peephole(node.constant(PEEPHOLE_OF[gate]), *quantize_multiplier(float(real)))
    return found


def _layer_norm(node: Node, gate: int) -> LayerNorm:
    weights = node.input(LAYER_NORMS + gate)
    mantissa, shift = quantize_multiplier(float(weights.scale))
    guard = max(1, int(np.float32(10000) * weights.scale))
    return LayerNorm(node.constant(LAYER_NORMS + gate), node.constant(BIASES + gate), mantissa, shift, guard)


def evaluate(data: OpData, x: Array, *operands: Array) -> tuple[Array, Array, Array]:
    """Source: EvalInteger8x8_16. Outputs, then the new output state and cell state."""
    steps = x if data.time_major else x.transpose(1, 0, 2)
    first_state, first_cell = operands[OUTPUT_STATE - 1], operands[CELL_STATE - 1]
    state = first_state.reshape(steps.shape[1], data.outputs)
    cell = np.array(first_cell).reshape(steps.shape[1], data.cells)
    outputs = np.empty((*steps.shape[:2], data.outputs), np.int8)
    from_input = data.from_input(steps) if x.size else np.zeros((*steps.shape[:2], 0), np.int32)
    for t in range(len(steps)):
        state = outputs[t] = _step(data, from_input[t], state, cell)
    arranged = outputs if data.time_major else np.ascontiguousarray(outputs.transpose(1, 0, 2))
    return arranged, state.reshape(first_state.shape).copy(), cell.reshape(first_cell.shape)


def _step(data: OpData, from_input: Array, state: Array, cell: Array) -> Array:
    """The new output state of all batches; `cell` is changed in place. Source: LstmStepInteger8x8_16."""
    entered = np.clip(from_input, _LOW16, _HIGH16)
    sums = np.clip(entered + data.from_state(state), _LOW16, _HIGH16).astype(np.int16)
    gates = dict(zip(data.gates, np.split(sums, len(data.gates), axis=1), strict=True))
    ready = {gate: _activate(data, gate, gates[gate], cell) for gate in data.gates if gate != OUTPUT}
    input_gate = ready.get(INPUT)
    if input_gate is None:
        input_gate = np.int16(32767) - ready[FORGET]
    _update_cell(ready[FORGET], input_gate, ready[CELL], data.cell_log2, data.cell_clip, cell)
    hidden = np.empty(cell.shape, np.int8)
    _hide(_activate(data, OUTPUT, gates[OUTPUT], cell), cell, 15 + data.cell_log2, *data.hidden,
          data.hidden_zero_point, hidden)  # fmt: skip
    if data.projection is None:
        return hidden
    projected = np.clip(data.projection(hidden) + data.state_zero_point, -128, 127)
    if data.projection_clip > 0:
        projected = np.maximum(np.minimum(projected, data.projection_clip), -data.projection_clip)
    return np.asarray(projected.astype(np.int8))


def _activate(data: OpData, gate: int, sums: Array, cell: Array) -> Array:
    """Peephole, layer norm, then the sigmoid (tanh for the cell gate), Q3.12 -> Q0.15."""
    out = np.array(sums)
    peephole = data.peepholes.get(gate)
    if peephole is not None:
        # The source walks outputs, not cells, along both arrays: across batches where time comes first.
        rows = (1, -1) if data.time_major else cell.shape
        count = data.outputs * (len(cell) if data.time_major else 1)
        _add_peephole(
            cell.reshape(rows), peephole.weights, peephole.mantissa, peephole.shift, data.outputs, count,
            out.reshape(rows),
        )  # fmt: skip
    norm = data.layer_norms.get(gate)
    if norm is not None:
        _normalise(out, norm.weights, norm.bias, norm.mantissa, norm.shift, norm.guard)
    if gate == CELL:
        _tanh(out)
    else:
        _logistic(out)
    return out


@compiled
def _add_peephole(
    cell: Array, weights: Array, mantissa: Int, shift: Int, period: Int, count: Int, out: Array
) -> None:  # fmt: skip
    """out += weights * cell over the first `count` elements of each row, weights repeating after `period`."""
    for r in range(out.shape[0]):
        for i in range(count):
            product = multiply_double_rounding(np.int64(weights[i % period]) * np.int64(cell[r, i]), mantissa, shift)
            out[r, i] = clamp(product + np.int64(out[r, i]), -32768, 32767)


@compiled
def _divide_towards_zero(a: Int, b: Int) -> Int:
    """a / b as C divides, b > 0."""
    return a // b if a >= 0 else -((-a) // b)


@compiled
def _normalise(gate: Array, weights: Array, bias: Array, mantissa: Int, shift: Int, guard: Int) -> None:
    """Source: PortableApplyLayerNorm. Rounding: quotients towards zero, products as said. Overflow: wraps int32."""
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


@compiled
def _logistic(gate: Array) -> None:
    for b in range(gate.shape[0]):
        for i in range(gate.shape[1]):
            gate[b, i] = logistic(np.int64(gate[b, i]), 3, 16)


@compiled
def _tanh(gate: Array) -> None:
    for b in range(gate.shape[0]):
        for i in range(gate.shape[1]):
            gate[b, i] = tanh(np.int64(gate[b, i]), 3, 16)


@compiled
def _update_cell(forget: Array, enter: Array, update: Array, cell_log2: Int, clip: Int, cell: Array) -> None:
    """cell = forget * cell + enter * update, rounded half away. Source: UpdateLstmCellInteger. Products wrap int16."""
    for b in range(cell.shape[0]):
        for i in range(cell.shape[1]):
            kept = wrap(divide_by_pot_half_away(np.int64(forget[b, i]) * np.int64(cell[b, i]), 15), 16)
            new = divide_by_pot_half_away(np.int64(enter[b, i]) * np.int64(update[b, i]), 30 + cell_log2)
            total = clamp(kept + wrap(new, 16), -32768, 32767)
            cell[b, i] = max(min(total, clip), -clip) if clip > 0 else total


@compiled
def _hide(
    gate: Array, cell: Array, integer_bits: Int, mantissa: Int, shift: Int, zero_point: Int, hidden: Array
) -> None:  # fmt: skip
    """hidden = gate * tanh(cell). Source: CalculateLstmOutputInteger8x8_16, PortableCwiseMul."""
    for b in range(cell.shape[0]):
        for i in range(cell.shape[1]):
            product = np.int64(gate[b, i]) * tanh(np.int64(cell[b, i]), integer_bits, 16)
            hidden[b, i] = clamp(multiply_double_rounding(product, mantissa, shift) + zero_point, -128, 127)


KERNELS = (
    Kernel(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "int8 int8? int8 int8 int8 int8? int8 int8 int8 int16? int16? int16? int32? int32 int32 int32 "
        "int8? int32? int8 int16 int16? int16? int16? int16? -> int8",
        prepare,
        (1, 3),
    ),
)
