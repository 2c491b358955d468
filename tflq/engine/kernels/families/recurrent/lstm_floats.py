"""The LSTM cell on float activations over a sequence, one row at a time, compiled.

The comments on each line are in lstm.py, which computes it over several rows at once.
Source: LiteRT 2.3 lstm_eval.cc LstmStepFloat, LstmStepHybrid.

The LSTM cell on float activations, with float32 or 8-bit weights.

A gate is f(W x + V a + R h + p * c + b); with layer normalisation the sum without b is normalised and scaled first.
Float products come from Eigen, each added to the running sum. With 8-bit weights rows are quantized one by one, sums
are exact, and a product whose left side is all zero is left out.
Source: LiteRT 2.3 lstm_eval.cc LstmStepFloat, LstmStepHybrid; tensor_utils.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.ordered import clamp_std
from tflq.engine.kernels.families.recurrent.lstm_operands import (
    CELL,
    FORGET,
    INPUT,
    OUTPUT,
    LstmRoles,
    LstmSizes,
    is_diagonal,
)
from tflq.engine.kernels.families.recurrent.parts import (
    Inputs,
    Weights,
    activate,
    apply,
    function_of,
    matrix,
    optional_matrix,
)
from tflq.engine.kernels.families.recurrent.rnn import is_asymmetric
from tflq.engine.kernels.kernel import Node
from tflq.engine.numerics import eigen
from tflq.engine.numerics import eigen as eigen_activations
from tflq.engine.numerics.dynamic_range import NO_INTEGERS, ByteMatrix, QuantizedRows, add_defined, quantize_rows
from tflq.engine.numerics.eigen import logistic_element, logistic_of_exp, matrix_vector
from tflq.engine.numerics.libm import expf
from tflq.engine.numerics.products import holds_zeros, is_zero
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
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


#: Which part of the scratch buffer a gate is written to: with an input gate, and without.
_PLACE = {INPUT: 0, CELL: 1, FORGET: 2, OUTPUT: 3}
_PLACE_CIFG = {CELL: 0, FORGET: 1, OUTPUT: 2}


#: The least and the largest float32.
_FINITE = np.finfo(np.float32).min, np.finfo(np.float32).max


@dataclass(frozen=True, slots=True, eq=False)
class GateSide:
    """The weights that one left side meets: all gates' together, or each gate's with the columns of its sums."""

    parts: tuple[tuple[slice, Weights], ...]  # a vector is a recurrent diagonal
    cache: int  # bytes, see eigen.product

    def add(self, left: Array | QuantizedRows, hidden: Array, total: Array) -> Array:
        """Return total (B, G C) plus the products; `total` itself with 8-bit weights, else a new array."""
        if isinstance(left, np.ndarray) and len(self.parts) == 1:
            weights = self.parts[0][1]
            assert not isinstance(weights, ByteMatrix)
            return added(weights, left, total, self.cache)
        fresh = np.array(total) if isinstance(left, np.ndarray) else total
        for columns, weights in self.parts:
            if isinstance(weights, ByteMatrix):
                assert isinstance(left, QuantizedRows)
                weights.accumulate(left, fresh[:, columns])
            elif weights.ndim == 1:
                fresh[:, columns] += weights * hidden
            else:
                assert isinstance(left, np.ndarray)
                fresh[:, columns] = added(weights, left, fresh[:, columns], self.cache)
        return fresh


def added(weights: Array, left: Array, sums: Array, cache: int) -> Array:
    """Return `sums` plus left times weights. Infinities become the largest float32: in the sum of one row, in the
    products of several.

    Source: lstm_eval.cc MatrixBatchVectorMultiplyAccumulate, which adds by FullyConnected or after it.
    """
    product = eigen.product(weights, left, cache=cache)
    if len(left) == 1:
        product += sums
        return clamp_in_place(product, *_FINITE)
    clamp_in_place(product, *_FINITE)
    product += sums
    return product


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """Operands of a gate besides its products. Vectors are (cells,) float32."""

    columns: slice  # of the sums of all gates
    peephole: Array | None
    norm: Array | None
    bias: Array
    offset: int  # elements between a 16-byte boundary and the gate in the source's scratch buffer


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One cell, bound to its weights. All gates' sums lie side by side, G C columns."""

    sizes: LstmSizes
    start: Array  # (G C,): what sums begin with: biases, or zeros where they are added after a normalisation
    sides: tuple[GateSide, GateSide | None, GateSide]  # of x, of the auxiliary input, of the hidden state
    gates: dict[int, Gate]
    projection: Weights | None
    projection_bias: Array | None
    activation: int
    cell_clip: np.float32  # 0: none
    projection_clip: np.float32
    asymmetric: bool
    quantized: bool  # weights have 8 bits
    diagonal: bool  # the cell gate's recurrent weights are
    cache: int  # bytes, see eigen.product
    by_row: tuple[Any, ...] | None = field(init=False, repr=False)  # constants of run_rows; None if it cannot serve

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_row", _by_row(self))

    @classmethod
    def of(
        cls,
        node: Node,
        roles: LstmRoles,
        sizes: LstmSizes,
        inputs: Inputs,
        *,
        rows: int,
        cache: int,
        auxiliary: bool = False,
    ) -> Cell:
        """Bind the operands at their roles; `rows` batches step together, `cache` is that of eigen.product."""
        quantized = node.input(roles.inputs[OUTPUT]).type != TensorType.FLOAT32
        # Exact sums don't care how units are grouped, nor do Eigen's for a single row of several units.
        together = quantized or (rows == 1 and sizes.cells > 1)
        gates = {gate: _gate_of(node, roles, sizes, inputs, gate) for gate in sizes.gates}
        start = np.concatenate([gate.bias for gate in gates.values()])
        sides = [
            _side_of(node, positions, sizes, inputs, together, cache) if positions else None
            for positions in (roles.inputs, roles.auxiliary if auxiliary else (), roles.recurrent)
        ]
        assert sides[0] is not None
        assert sides[2] is not None
        return cls(
            sizes=sizes,
            start=np.zeros_like(start) if sizes.normalised else start,
            sides=(sides[0], sides[1], sides[2]),
            gates=gates,
            projection=optional_matrix(node, roles.projection, inputs),
            projection_bias=_vector(node, roles.projection_bias, inputs),
            activation=function_of(node),
            cell_clip=np.float32(node.options.get("cell_clip", 0)),
            projection_clip=np.float32(node.options.get("proj_clip", 0)),
            asymmetric=is_asymmetric(node),
            quantized=quantized,
            diagonal=is_diagonal(node.input(roles.recurrent[CELL])),
            cache=cache,
        )

    def run_rows(self, x: Array, states: Sequence[Array], out: Array) -> None:
        """Run a whole sequence (N, T, I) batch by batch, each row a step of its own; fill `out` (N, T, O)."""
        assert self.by_row is not None
        undefined = np.zeros(1, np.int8)
        run_rows(x, *self.by_row, 0, *states, out, undefined)
        if undefined[0]:
            raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """Run one step: `x` (B, I), `aux` (B, A), states hidden (B, O), memory (B, C). Return the new hidden state."""
        hidden, memory = states
        total, present = self._sums(x, aux, hidden)

        def gate(number: int) -> Array:
            return self._finish(self.gates[number], total, memory)

        def opening(number: int) -> Array:
            return eigen_activations.logistic(gate(number), self.gates[number].offset + row * self.sizes.cells)

        input_gate = None if self.sizes.cifg else opening(INPUT)
        forget, update = opening(FORGET), activate(self.activation, gate(CELL), present)
        memory *= forget
        memory += update * (np.float32(1) - forget if input_gate is None else input_gate)
        if self.cell_clip > 0:
            memory[:] = clip(memory, self.cell_clip)
        product = opening(OUTPUT) * activate(self.activation, memory, present=update)
        hidden[:] = product if self.projection is None else self._project(self.projection, product)
        return hidden

    def _sums(self, x: Array, aux: Array | None, hidden: Array) -> tuple[Array, Array | None]:
        """Return the sums of all gates, and the cell gate's own buffer if its sum is in another one.

        With float weights every product moves the sum from one buffer to the other, except a diagonal.
        """
        total = np.empty((len(x), self.start.size), np.float32)
        total[:] = self.start
        columns = self.gates[CELL].columns
        present: Array | None = None
        lefts = self._left(x), None if aux is None else self._left(aux), self._state(hidden)
        for number, (side, left) in enumerate(zip(self.sides, lefts, strict=True)):
            if side is None or left is None:
                continue
            before, total = total, side.add(left, hidden, total)
            if not (self.quantized or (number == 2 and self.diagonal)):
                present = before[:, columns] if present is None else None
        return total, present

    def _left(self, x: Array) -> Array | QuantizedRows | None:
        """Return the left side of a product; None if it is all zero."""
        source = np.ascontiguousarray(x)
        if is_zero(source):
            return None
        return quantize_rows(source, self.asymmetric) if self.quantized else source

    def _state(self, hidden: Array) -> Array | QuantizedRows | None:
        """Return the operand of products with the hidden state: quantized rows in hybrid cells, else floats."""
        return self._left(hidden) if self.quantized else np.ascontiguousarray(hidden)

    def _finish(self, gate: Gate, total: Array, memory: Array) -> Array:
        """Return the gate's sum, contiguous, with peephole and normalisation."""
        result = np.ascontiguousarray(total[:, gate.columns])
        if gate.peephole is not None:
            result += gate.peephole * memory
        if gate.norm is not None:
            normalise(result)
            result *= gate.norm
            result += gate.bias
        return result

    def _project(self, weights: Weights, product: Array) -> Array:
        result = np.zeros((len(product), self.sizes.outputs), np.float32)
        if self.projection_bias is not None:
            result += self.projection_bias
        if isinstance(weights, ByteMatrix):
            if not is_zero(product):
                weights.accumulate(quantize_rows(product, self.asymmetric), result)
        else:
            result = added(weights, product, result, self.cache)
        return clip(result, self.projection_clip) if self.projection_clip > 0 else result


def _by_row(cell: Cell) -> tuple[Any, ...] | None:
    """Return the constants of `run_rows`, except the number of the first row."""
    projection, sizes = cell.projection, cell.sizes
    joined = [side.parts[0][1] for side in (cell.sides[0], cell.sides[2])]
    is_split = any(len(side.parts) > 1 for side in (cell.sides[0], cell.sides[2])) or sizes.cells == 1
    is_single = isinstance(projection, np.ndarray) and sizes.outputs == 1
    if is_split or is_single or cell.sides[1] is not None or not sizes.inputs or not expf.is_compiled_alike:
        return None
    matrices = [*joined, np.zeros((0, 0), np.float32) if projection is None else projection]
    gates = list(cell.gates.values())
    peepholes = [np.zeros_like(gate.bias) if gate.peephole is None else gate.peephole for gate in gates]
    has_peepholes = any(gate.peephole is not None for gate in gates)
    norms = [gate.norm for gate in gates if gate.norm is not None]
    nothing = np.zeros((0, 0), np.float32)
    return (
        np.array(cell.start),
        tuple(nothing if isinstance(m, ByteMatrix) else np.array(m) for m in matrices),
        tuple(m.integers() if isinstance(m, ByteMatrix) else NO_INTEGERS for m in matrices),
        tuple(sizes.gates.index(gate) if gate in sizes.gates else -1 for gate in (INPUT, FORGET, CELL, OUTPUT)),
        np.array([gate.offset for gate in gates], np.int64),
        np.array(peepholes, np.float32) if has_peepholes else nothing,
        np.array(norms, np.float32) if norms else nothing,
        np.array([gate.bias for gate in gates], np.float32),
        np.zeros(0, np.float32) if cell.projection_bias is None else np.array(cell.projection_bias),
        projection is not None,
        cell.activation,
        (cell.cell_clip, cell.projection_clip),
        cell.asymmetric,
    )


def _side_of(
    node: Node, positions: tuple[int, ...], sizes: LstmSizes, inputs: Inputs, together: bool, cache: int
) -> GateSide:
    """Return the weights at `positions`, by gate."""
    operands = [node.input(positions[gate]) for gate in sizes.gates]
    values = [_present(inputs[positions[gate]]) for gate in sizes.gates]
    if together and not any(is_diagonal(operand) for operand in operands):
        scales = np.repeat([operand.scale for operand in operands], sizes.cells)
        joined = np.concatenate(values)
        matrix_ = np.ascontiguousarray(joined.T) if joined.dtype == np.float32 else ByteMatrix.of(joined, scales)
        return GateSide(((slice(None), matrix_),), cache)
    parts = []
    for number, (operand, value) in enumerate(zip(operands, values, strict=True)):
        weights = value if is_diagonal(operand) else matrix(operand, value)
        parts.append((slice(number * sizes.cells, (number + 1) * sizes.cells), weights))
    return GateSide(tuple(parts), cache)


def _gate_of(node: Node, roles: LstmRoles, sizes: LstmSizes, inputs: Inputs, gate: int) -> Gate:
    place, number = (_PLACE_CIFG if sizes.cifg else _PLACE)[gate], sizes.gates.index(gate)
    return Gate(
        columns=slice(number * sizes.cells, (number + 1) * sizes.cells),
        peephole=_vector(node, roles.peephole(gate), inputs),
        norm=_vector(node, roles.norms[gate], inputs) if sizes.normalised else None,
        bias=_present(inputs[roles.biases[gate]]),
        offset=place * sizes.cells * sizes.batches,
    )


def _present(value: Array | None) -> Array:
    assert value is not None  # check saw to it
    return value


def _vector(node: Node, position: int | None, inputs: Inputs) -> Array | None:
    """Return a vector as float32: 8-bit codes, read as int8, times their scale. Source: NeonVectorScalarMultiply."""
    operand = None if position is None else node.optional(position)
    if operand is None or position is None:
        return None
    value = _present(inputs[position])
    return value if value.dtype == np.float32 else value.view(np.int8).astype(np.float32) * operand.scale


def clip(x: Array, limit: np.float32) -> Array:
    """Return `x` held inside [-limit, limit]; NaN gives the limit. Source: PortableCwiseClipping."""
    upper = np.where(x < limit, x, limit)
    return np.where(upper < -limit, -limit, upper)
