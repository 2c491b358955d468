"""The LSTM cell on 8-bit activations whose products are 8 bits wide as well, with a 16-bit cell state.

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

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.recurrent.lstm_operands import CELL, FORGET, OUTPUT, SINGLE, Sizes
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Contraction
from tflq.engine.numerics.libm import expf, tanhf
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, float_to_int32, round_half_away, wrap
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, type_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_LOW16, _HIGH16 = -32768, 32767
#: First intermediate of each gate.
_FIRST = {FORGET: 3, CELL: 6, OUTPUT: 9}


@dataclass(frozen=True, slots=True, eq=False)
class Product:
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
class Gate:
    """One gate."""

    from_input: Product
    from_state: Product
    norm: Array  # int16
    bias: Array  # int32, 2**-10 of the norm's scale
    norm_scale: np.float32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a step."""

    forget: Gate
    cell: Gate
    output: Gate
    projection: Contraction  # of hidden values, Q0.15
    projection_bias: Array  # int32
    to_state: OutputPipeline
    cell_clip: int  # LSB of cell state; 0: none
    projection_clip: int  # LSB of output state; 0: none
    sizes: Sizes


def bind(node: Node, arithmetic: Arithmetic, sizes: Sizes) -> OpData:
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


def _gate(node: Node, arithmetic: Arithmetic, gate: int) -> Gate:
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

    def product(left: Operand, position: int, code: Operand, number: int) -> Product:
        weights = node.input(position)
        real = np.float64(weights.scale * left.scale / code.scale)
        return Product(
            zero_point=left.zero_point,
            products=Contraction.of(node.constant(position).T, (-128 - left.zero_point, 127 - left.zero_point)),
            pipeline=_codes(arithmetic.requantize(real), wrap(zero_points[number], 8)),
            multiplier=scaled[number],
        )

    return Gate(
        from_input=product(x, SINGLE.inputs[gate], of_input, 0),
        from_state=product(state, SINGLE.recurrent[gate], of_state, 1),
        norm=np.array(node.constant(SINGLE.norms[gate])),
        bias=np.array(node.constant(SINGLE.biases[gate])),
        norm_scale=np.float32(mantissa * 2.0 ** (shift - 31)),
    )


def step(data: OpData, x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
    """Return the new output state and cell state. Source: LstmStepInteger8x8_8."""
    forget = _logistic(_sum(data.forget, x, state))
    update = _tanh(_sum(data.cell, x, state), -12)
    memory = np.array(cell).reshape(len(x), -1)
    _update_cell(forget, update, data.cell_clip, memory)
    hidden = np.empty(memory.shape, np.int16)
    _multiply(_logistic(_sum(data.output, x, state)), _tanh(memory, -15), hidden)
    sums = data.projection(hidden.astype(data.projection.real))
    projected = data.to_state(sums.astype(np.int64), data.projection_bias)
    if data.projection_clip > 0:
        projected = np.clip(projected, -data.projection_clip, data.projection_clip)
    return projected, memory.reshape(cell.shape)


def _sum(gate: Gate, x: Array, state: Array) -> Array:
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


def _logistic(gate: Array) -> Array:
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
