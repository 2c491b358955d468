"""The LSTM cell on float activations over a sequence, one row at a time, compiled.

The comments on each line are in lstm.py, which computes it over several rows at once.
Source: LiteRT 2.3 lstm_eval.cc LstmStepFloat, LstmStepHybrid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.ordered_sums import clamp_std
from tflq.engine.kernels.families.recurrent.activation import apply
from tflq.engine.numerics.dynamic_range import add_defined
from tflq.engine.numerics.eigen import matrix_vector
from tflq.engine.numerics.eigen_activations import logistic_element, logistic_of_exp
from tflq.engine.numerics.lanes import holds_zeros
from tflq.typing import Array


@compiled
def clip_element(x: Real, limit: Real) -> Real:
    """Return `x` held inside [-limit, limit]; NaN gives the limit. Source: PortableCwiseClipping."""
    upper = x if x < limit else limit
    return -limit if upper < -limit else upper


@in_pieces(8, x="r")
@compiled
def normalise(x: Array) -> None:
    """Subtract its mean from each row and divide by its standard deviation, in place; sums in order.

    Source: PortableMeanStddevNormalization.

    This function guarantees: all indices come from the shape of `x`.
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


@compiled
def _open(gate: Array, offset: Int) -> None:
    """Apply the logistic function to one row in place, `offset` elements behind a 16-byte boundary.

    This function guarantees: all indices come from the shape of `gate`.
    """
    size = gate.shape[1]
    head = min(-offset % 4, size)
    tail = head + ((size - head) & ~3)
    for i in range(size):
        inside = head <= i < tail
        gate[0, i] = logistic_element(gate[0, i]) if inside else logistic_of_exp(gate[0, i])


@compiled
def _add_product(left: Array, floats: Array, codes: Any, asymmetric: bool, out: Array, part: Array) -> bool:
    """Add left times a float matrix, or one of 8-bit codes where it has no rows. Return False if these are undefined.

    The caller guarantees: `left` is (1, K), `floats` (K, N) or empty, `codes` what add_quantized takes, `out` and
    `part` (1, N).
    """
    if floats.shape[0] > 0:
        largest = np.float32(3.4028234663852886e38)  # infinities become it; see `added`
        matrix_vector(floats, left, part)
        for n in range(out.shape[1]):
            out[0, n] = clamp_std(out[0, n] + part[0, n], -largest, largest)
        return True
    return bool(add_defined(left, asymmetric, codes, out))


@writes("hidden", "memory", "out", "undefined")
@in_pieces(
    lambda x, start, *_: x.shape[0] * x.shape[1] * (x.shape[2] + start.size + 64) * start.size,
    x="nt",
    hidden="n",
    memory="n",
    first="n",
    out="nt",
)
@compiled
def run_rows(
    x: Array,
    start: Array,
    floats: Any,
    codes: Any,
    roles: Any,
    offsets: Array,
    peepholes: Array,
    norms: Array,
    biases: Array,
    projection_bias: Array,
    is_projected: bool,
    activation: Int,
    clips: Any,
    asymmetric: bool,
    first: Int,
    hidden: Array,
    memory: Array,
    out: Array,
    undefined: Array,
) -> None:
    """Feed `x` (N, T, I) row by row; fill `out` (N, T, O), change `hidden` (N, O) and `memory` (N, C) in place.

    `floats` and `codes` are the matrices of x, of the hidden state and of the projection, as floats (K, N) or as what
    add_quantized takes; what is not there has no rows. Gates lie side by side in sums, at `roles` (input, forget, cell,
    output; -1: one minus the forget gate); `peepholes`, `norms` and `biases` (G, C) are 0 rows if there are none.
    `first` is the number of the first row of x. `undefined` becomes 1 where a row cannot be quantized.

    Prepare guarantees: these shapes; start has G * C elements, `offsets` G.
    """
    cells, size = memory.shape[1], start.size
    total, part = np.empty((1, size), np.float32), np.empty((1, size), np.float32)
    gates = np.empty((size // cells, 1, cells), np.float32)
    output, input_gate, forget, update, output_gate = (
        np.empty((1, cells), np.float32),
        roles[0],
        roles[1],
        roles[2],
        roles[3],
    )
    result, drawn = np.empty((1, hidden.shape[1]), np.float32), np.empty((1, hidden.shape[1]), np.float32)
    is_float = floats[1].shape[0] > 0
    for n in range(x.shape[0]):
        state, memories = hidden[n : n + 1], memory[n : n + 1]
        for t in range(x.shape[1]):
            row = x[n, t : t + 1]
            total[0] = start
            skipped = holds_zeros(row)
            fine = skipped or _add_product(row, floats[0], codes[0], asymmetric, total, part)
            if not (fine and _add_product(state, floats[1], codes[1], asymmetric, total, part)):
                undefined[0] = 1
                return
            for g in range(gates.shape[0]):
                if g == output_gate:  # which comes last, and sees the new cell state
                    for c in range(cells):
                        opened = gates[forget, 0, c]
                        entering = gates[input_gate, 0, c] if input_gate >= 0 else np.float32(1) - opened
                        new = memories[0, c] * opened + gates[update, 0, c] * entering
                        memories[0, c] = clip_element(new, clips[0]) if clips[0] > 0 else new
                gate = gates[g]
                for c in range(cells):
                    gate[0, c] = total[0, g * cells + c]
                    if peepholes.shape[0] > 0 and g != update:
                        gate[0, c] += peepholes[g, c] * memories[0, c]
                if norms.shape[0] > 0:
                    normalise(gate)
                    for c in range(cells):
                        gate[0, c] = gate[0, c] * norms[g, c] + biases[g, c]
                if g != update:
                    _open(gate, offsets[g] + (first + n) * cells)
                elif activation == 0 and is_float and skipped:  # writes nothing: another buffer's sum is read
                    for c in range(cells):
                        gate[0, c] = start[g * cells + c]
                else:
                    for c in range(cells):
                        gate[0, c] = apply(activation, gate[0, c])
            for c in range(cells):
                active = gates[update, 0, c] if activation == 0 else apply(activation, memories[0, c])
                output[0, c] = gates[output_gate, 0, c] * active
            if not is_projected:
                state[0] = output[0]
            else:
                for o in range(result.shape[1]):
                    result[0, o] = np.float32(0) + projection_bias[o] if projection_bias.size > 0 else np.float32(0)
                if not _add_product(output, floats[2], codes[2], asymmetric, result, drawn):
                    undefined[0] = 1
                    return
                for o in range(result.shape[1]):
                    state[0, o] = clip_element(result[0, o], clips[1]) if clips[1] > 0 else result[0, o]
            out[n, t] = state[0]
