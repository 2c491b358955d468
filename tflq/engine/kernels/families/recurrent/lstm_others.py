"""LSTMs of kernel type BASIC, and with products of 8 bits.

LSTM of kernel type BASIC: one product makes all gates, in the order input, cell, forget, output.

Source: LiteRT 2.3 lstm.cc basic; optimized_ops.h LstmCell (float; uint8 with int16 gates and state).

The LSTM cell on 8-bit activations whose products are 8 bits wide as well, with a 16-bit cell state.

Each product is scaled to a code of its own, both are added as int16 and normalised in float32; activations go through
float32 too. The input gate is always 1 - forget gate, peepholes are not read; layer normalisation and a projection with
its bias must be there. Twelve intermediates, three a gate: the sum, x's product, the state's product.

Faults of the source, kept: an input gate's operands are ignored; the output gate scales the state's product with a
mantissa read four places beyond its array, which is the shift of the forget gate's, and centres it with the zero point
of the cell gate's product of x.
Source: LiteRT 2.3 lstm.cc PopulateQuantizedLstmParams8x8_8; lstm_eval.cc LstmStepInteger8x8_8;
portable_tensor_utils.cc PortableApplyLayerNormFloat, PortableApplySigmoidFloat, PortableApplyTanhFloat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.recurrent.lstm_operands import CELL, FORGET, OUTPUT, SINGLE, LstmSizes
from tflq.engine.kernels.families.recurrent.parts import Inputs, bind
from tflq.engine.kernels.kernel import Node, Operand, Prepared, Shape
from tflq.engine.numerics import eigen
from tflq.engine.numerics import eigen as eigen_activations
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.elementary import logistic, tanh
from tflq.engine.numerics.libm import expf, tanhf
from tflq.engine.numerics.multiplier import Multiplier, check_log2, multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.products import Contraction, accumulators_int32
from tflq.engine.numerics.rounding import (
    clamp,
    divide_by_pot_half_away,
    doubling_high_mul,
    float_to_int32,
    rescale,
    round_half_away,
    saturating_add,
    wrap,
)
from tflq.engine.numerics.stage_roundings import HalfUpTwice
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, StageOf, type_range
from tflq.errors import UndefinedResultError
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
        require_rank(node, operand, 2)
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


_LOW16, _HIGH16 = -32768, 32767
#: First intermediate of each gate.
_FIRST = {FORGET: 3, CELL: 6, OUTPUT: 9}


@dataclass(frozen=True, slots=True, eq=False)
class NarrowProduct:
    """A matrix product as an 8-bit code, and what that code is multiplied by in the gate's sum."""

    zero_point: ZeroPoint  # LSB of the left side
    products: Contraction
    pipeline: OutputPipeline
    multiplier: Multiplier  # LSB of the code -> LSB of the sum, Q31

    def __call__(self, x: Array) -> Array:
        """Return the centred codes of `x` (B, K)."""
        centred = (x.astype(np.int16) - np.int16(self.zero_point)).astype(self.products.real)
        return np.asarray(self.pipeline(self.products(centred)).astype(np.int32) - self.pipeline.zero_point)


@dataclass(frozen=True, slots=True, eq=False)
class NarrowGate:
    """One gate."""

    from_input: NarrowProduct
    from_state: NarrowProduct
    norm: Array  # int16
    bias: Array  # int32, 2**-10 of the norm's scale
    norm_scale: np.float32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a step."""

    forget: NarrowGate
    cell: NarrowGate
    output: NarrowGate
    projection: Contraction  # of hidden values, Q0.15
    projection_bias: Array  # int32
    to_state: OutputPipeline
    cell_clip: int  # LSB of cell state; 0: none
    projection_clip: int  # LSB of output state; 0: none
    sizes: LstmSizes


def bind_lstm_narrow(node: Node, arithmetic: Arithmetic, sizes: LstmSizes) -> OpData:
    """Return the constants of a node whose shapes were checked. Float32 scales are widened for the multipliers."""
    projected = all(node.optional(p) is not None for p in (SINGLE.projection, SINGLE.projection_bias))
    if not (sizes.normalised and projected):
        raise UndefinedResultError("LstmStepInteger8x8_8", "no layer norm, projection or its bias: read through null")
    state, cell, y = node.input(SINGLE.output_state), node.input(SINGLE.cell_state), node.outputs[0]
    for operand in (node.input(0), state, cell, y, *node.intermediates):
        node.check(operand.is_quantized, "is not quantized", operand)
    node.check(cell.scale == np.float32(2.0**-15), "scale", cell, expected=2.0**-15, got=cell.scale)
    real = np.float32(float(node.input(SINGLE.projection).scale) * 2.0**-15 / float(state.scale))
    cell_clip, projection_clip = (float(node.options.get(name, 0)) for name in ("cell_clip", "proj_clip"))
    return OpData(
        forget=_gate(node, arithmetic, FORGET),
        cell=_gate(node, arithmetic, CELL),
        output=_gate(node, arithmetic, OUTPUT),
        projection=Contraction.of(node.constant(SINGLE.projection).T, (_LOW16, _HIGH16)),
        projection_bias=np.array(node.constant(SINGLE.projection_bias), np.int64),
        to_state=_codes(arithmetic.requantize_wide(np.float64(real)), state.zero_point),
        cell_clip=_clip(cell_clip, cell.scale, _HIGH16) if cell_clip < 1 else 0,
        projection_clip=_clip(projection_clip, y.scale, 127),
        sizes=sizes,
    )


def _clip(real: float, scale: np.float32, high: int) -> int:
    """Return a clip in codes, cut towards zero; 0 for none."""
    return int(min(np.float32(real) / scale, np.float32(high))) if real > 0 else 0


def _codes(stage: OutputStage, zero_point: int) -> OutputPipeline:
    return OutputPipeline(stage, ZeroPoint(zero_point), type_range(np.int8), np.dtype(np.int8))


def _gate(node: Node, arithmetic: Arithmetic, gate: int) -> NarrowGate:
    first = _FIRST[gate]
    total, of_input, of_state = node.intermediates[first : first + 3]
    scaled = [quantize_multiplier(float(operand.scale / total.scale)) for operand in (of_input, of_state)]
    zero_points = [of_input.zero_point, of_state.zero_point]
    if gate == OUTPUT:
        forget = node.intermediates[_FIRST[FORGET] : _FIRST[FORGET] + 3]
        misread = quantize_multiplier(float(forget[2].scale / forget[0].scale)).shift
        scaled[1] = Multiplier(misread, scaled[1].shift)
        zero_points[1] = node.intermediates[_FIRST[CELL] + 1].zero_point
    x, state, norm = node.input(0), node.input(SINGLE.output_state), node.input(SINGLE.norms[gate])
    mantissa, shift = quantize_multiplier(float(norm.scale))

    def product(left: Operand, position: int, code: Operand, number: int) -> NarrowProduct:
        weights = node.input(position)
        real = np.float64(weights.scale * left.scale / code.scale)
        return NarrowProduct(
            zero_point=left.zero_point,
            products=Contraction.of(node.constant(position).T, (-128 - left.zero_point, 127 - left.zero_point)),
            pipeline=_codes(arithmetic.requantize(real), wrap(zero_points[number], 8)),
            multiplier=scaled[number],
        )

    return NarrowGate(
        from_input=product(x, SINGLE.inputs[gate], of_input, 0),
        from_state=product(state, SINGLE.recurrent[gate], of_state, 1),
        norm=np.array(node.constant(SINGLE.norms[gate])),
        bias=np.array(node.constant(SINGLE.biases[gate])),
        norm_scale=np.float32(mantissa * 2.0 ** (shift - 31)),
    )


def step(data: OpData, x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
    """Return the new output state and cell state. Source: LstmStepInteger8x8_8."""
    forget = _logistic_lstm_narrow(_sum(data.forget, x, state))
    update = _tanh(_sum(data.cell, x, state), -12)
    memory = np.array(cell).reshape(len(x), -1)
    _update_cell(forget, update, data.cell_clip, memory)
    hidden = np.empty(memory.shape, np.int16)
    _multiply(_logistic_lstm_narrow(_sum(data.output, x, state)), _tanh(memory, -15), hidden)
    sums = data.projection(hidden.astype(data.projection.real))
    projected = data.to_state(sums.astype(np.int64), data.projection_bias)
    if data.projection_clip > 0:
        projected = np.clip(projected, -data.projection_clip, data.projection_clip)
    return projected, memory.reshape(cell.shape)


def _sum(gate: NarrowGate, x: Array, state: Array) -> Array:
    """Return the gate before its activation, Q3.12."""
    a, b = gate.from_input, gate.from_state
    codes, others = a(x), b(state.reshape(len(x), -1))
    total = np.empty(codes.shape, np.int16)
    _add(codes, others, *a.multiplier, *b.multiplier, total)
    _normalise(total, gate.norm, gate.bias, gate.norm_scale)
    return total


@in_pieces(8, a="r", b="r", out="r")
@compiled
def _add(a: Array, b: Array, mantissa_a: Int, shift_a: Int, mantissa_b: Int, shift_b: Int, out: Array) -> None:
    """Source: PortableTwoGateSaturatingAdd.

    Prepare guarantees: all arrays are (batch, cells).
    """
    for r in range(a.shape[0]):
        for i in range(a.shape[1]):
            first = multiply_double_rounding(np.int64(a[r, i]), mantissa_a, shift_a)
            second = multiply_double_rounding(np.int64(b[r, i]), mantissa_b, shift_b)
            out[r, i] = clamp(first + second, -32768, 32767)


@in_pieces(8, gate="r")
@compiled
def _normalise(gate: Array, norm: Array, bias: Array, scale: Real) -> None:
    """Normalise in float32, sums in order; back to Q3.12, half away from zero. Source: PortableApplyLayerNormFloat.

    Prepare guarantees: `norm` and `bias` have an element for every cell.
    """
    rows, size = gate.shape
    count = np.float32(size)
    bias_scale = np.float32(2.0**-10) * np.float32(scale)
    for b in range(rows):
        total = np.float32(0)
        squares = np.float32(0)
        for i in range(size):
            value = np.float32(gate[b, i])
            total += value
            squares += value * value
        mean = total / count
        variance = squares / count - mean * mean
        inverse = np.float32(1) / np.sqrt(np.float32(1e-8) if variance == 0 else variance)
        for i in range(size):
            normal = (np.float32(gate[b, i]) - mean) * inverse
            weighed = normal * np.float32(norm[i]) * np.float32(scale) + np.float32(bias[i]) * bias_scale
            code = float_to_int32(round_half_away(np.float64(weighed * np.float32(4096))))
            gate[b, i] = clamp(code, -32768, 32767)


def _logistic_lstm_narrow(gate: Array) -> Array:
    """Convert Q3.12 -> Q0.15, cut towards zero. Source: PortableApplySigmoidFloat."""
    real = gate.astype(np.float32) * np.float32(2.0**-12)
    return _to_q15(np.float32(1) / (np.float32(1) + expf(-real)))


def _tanh(x: Array, log2: int) -> Array:
    """Compute x * 2**log2 -> Q0.15, cut towards zero. Source: PortableApplyTanhFloat."""
    return _to_q15(tanhf(x.astype(np.float32) * np.float32(2.0**log2)))


def _to_q15(real: Array) -> Array:
    return np.asarray(np.clip((real * np.float32(32768)).astype(np.int32), _LOW16, _HIGH16).astype(np.int16))


@in_pieces(4, cell="r", forget="r", update="r")
@compiled
def _update_cell(forget: Array, update: Array, clip: Int, cell: Array) -> None:
    """Update cell = forget * cell + (1 - forget) * update, all Q0.15, half away. Source: UpdateLstmCellInteger.

    Prepare guarantees: all arrays are (batch, cells).
    """
    for b in range(cell.shape[0]):
        for i in range(cell.shape[1]):
            kept = wrap(divide_by_pot_half_away(np.int64(forget[b, i]) * np.int64(cell[b, i]), 15), 16)
            input_gate = np.int64(32767) - np.int64(forget[b, i])
            new = wrap(divide_by_pot_half_away(input_gate * np.int64(update[b, i]), 15), 16)
            total = clamp(kept + new, -32768, 32767)
            cell[b, i] = max(min(total, clip), -clip) if clip > 0 else total


@in_pieces(2, a="r", b="r", out="r")
@compiled
def _multiply(a: Array, b: Array, out: Array) -> None:
    """Compute Q0.15 products, half away from zero, wrapped to int16. Source: PortableCwiseMul.

    Prepare guarantees: all arrays are (batch, cells).
    """
    for r in range(a.shape[0]):
        for i in range(a.shape[1]):
            out[r, i] = wrap(divide_by_pot_half_away(np.int64(a[r, i]) * np.int64(b[r, i]), 15), 16)
