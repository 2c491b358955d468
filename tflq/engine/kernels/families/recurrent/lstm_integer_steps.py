"""The steps of the LSTM cell on 8-bit activations, compiled: what a gate goes through, and the loop over time.

Source: LiteRT 2.3 lstm_eval.cc LstmStepInteger8x8_16; portable_tensor_utils.cc.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps
from tflq.engine.numerics.elementary import inverse_sqrt, logistic_into, tanh_into
from tflq.engine.numerics.multiplier import multiply_double_rounding, round_twice
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, wrap, wrap_int32
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
def finish_gate(
    gate: Int,
    curve: Array,
    across: bool,
    outputs: Int,
    peephole: Array,
    peephole_scales: Array,
    norm: Array,
    norm_bias: Array,
    norm_scales: Array,
    cell: Array,
    sums: Array,
) -> None:
    """Apply peephole, layer norm, then `curve` to sums (batch, cells) in place.

    Q3.12 -> Q0.15. If `across`, the peephole walks across batches. Prepare guarantees: vectors have an element for
    every cell, or none; `outputs` is at most the number of cells where there is a peephole.
    """
    if peephole.size > 0:
        mantissa, shift = peephole_scales[gate, 0], peephole_scales[gate, 1]
        if across:
            count = outputs * cell.shape[0]
            add_peephole(cell.reshape((1, -1)), peephole, mantissa, shift, outputs, count, sums.reshape((1, -1)))
        else:
            add_peephole(cell, peephole, mantissa, shift, outputs, outputs, sums)
    if norm.size > 0:
        normalise(sums, norm, norm_bias, norm_scales[gate, 0], norm_scales[gate, 1], norm_scales[gate, 2])
    look_up(sums, curve)


@in_steps(
    lambda from_input, shapes, from_state, *_: len(from_input) * from_input.shape[1] * (from_state[0].size + 1000)
)
@compiled
def run_steps(
    from_input: Array,
    shapes: Any,
    from_state: Any,
    projection: Any,
    roles: Any,
    peepholes: Any,
    peephole_scales: Array,
    norms: Any,
    norm_biases: Any,
    norm_scales: Array,
    time_major: bool,
    hiding: Any,
    projecting: Any,
    state: Array,
    cell: Array,
    outputs: Array,
) -> None:
    """Run all steps: fill `outputs` (T, B, O), update the cell state (B, C). `from_input` is (T, B, gates * C).

    `shapes` are the tables of `curves`. `from_state` and `projection` are arguments of `multiply`, `projection` with no
    rows if there is none. `roles` are the numbers of the input, forget, cell and output gates, -1 for an input gate
    that is 1 - forget gate; peepholes and norms come by number. `hiding` is the cell's log2 scale and clip, then the
    multiplier and the zero point of the hidden state; `projecting` the output state's zero point and clip. Overflow: as
    LstmStepInteger8x8_16, wraps int32.

    Prepare guarantees: these shapes; vectors of norms and peepholes have an element for every cell, or none.
    """
    batches, cells = cell.shape
    count = outputs.shape[2]
    input_gate, forget, update, output_gate = roles
    gates = np.empty((from_input.shape[2] // max(1, cells), batches, cells), np.int16)
    scaled = np.empty((batches, from_input.shape[2]), np.int32)
    entering, hidden = np.empty((batches, cells), np.int16), np.empty((batches, cells), np.int8)
    projected = np.empty((batches, count), np.int32)
    present, last = state, gates.shape[0] - 1
    for t in range(from_input.shape[0]):
        multiply(present, *from_state, scaled)
        for g in range(gates.shape[0]):
            for b in range(batches):
                for c in range(cells):
                    entered = clamp(np.int64(from_input[t, b, g * cells + c]), -32768, 32767)
                    total = wrap_int32(entered + np.int64(scaled[b, g * cells + c]))
                    gates[g, b, c] = clamp(total, -32768, 32767)
        for number in range(gates.shape[0]):  # the output gate comes last, and sees the new cell state
            g = output_gate if number == last else last if number == output_gate else number
            if number == last:
                for b in range(batches):
                    for c in range(cells):
                        entering[b, c] = gates[input_gate, b, c] if input_gate >= 0 else 32767 - gates[forget, b, c]
                update_cell(gates[forget], entering, gates[update], hiding[0], hiding[1], cell)
            finish_gate(
                g,
                shapes[1 if g == update else 0],
                time_major,
                count,
                peepholes[g],
                peephole_scales,
                norms[g],
                norm_biases[g],
                norm_scales,
                cell,
                gates[g],
            )
        hide(gates[output_gate], cell, shapes[2], hiding[2], hiding[3], hiding[4], hidden)
        following = outputs[t]
        if projection[0].shape[0] > 0:
            multiply(hidden, *projection, projected)
            for b in range(batches):
                for o in range(count):
                    code = clamp(wrap_int32(np.int64(projected[b, o]) + projecting[0]), -128, 127)
                    following[b, o] = max(min(code, projecting[1]), -projecting[1]) if projecting[1] > 0 else code
        else:
            for b in range(batches):
                for o in range(count):
                    following[b, o] = hidden[b, o]
        present = following
