"""The role of each operand: activation, weights, bias; cells and their states.

LSTM cells on 8-bit activations: the roles of their operands, and the scales that need no calibration.

LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM compute with an int8 state that is their output, an int16 cell state whose scale
is a power of two, and gates in Q3.12. A cell state grows by at most 1 per step, so the number of steps bounds it.

Source: LiteRT 2.3 tflite/kernels/unidirectional_sequence_lstm.cc, lstm.cc PopulateQuantizedLstmParams8x8_16;
tflite/converter/tools/optimize/operator_property.cc (operands of LSTM).

SVDF on 8-bit activations: types of its operands, and the scale of its state without calibration.

The int16 state holds products of the input with a filter's weights, so no state is greater than the greatest input
times the greatest sum of a filter's magnitudes.
Source: LiteRT 2.3 tflite/kernels/svdf.cc Prepare; reference/svdf.h EvalIntegerSVDF.

The role of each operand of an operator: activation, weights, bias, or unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.checks import code_limits
from tflq.engine.kernels.facts.fact import Weights
from tflq.engine.kernels.facts.rules import RULES, TABLES, needs_of
from tflq.engine.kernels.families.recurrent.lstm_operands import SINGLE
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric, symmetric
from tflq.quantization.recipe import TYPES, Mode
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.typing import Array

CELLS = frozenset({"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"})

OUTPUT_STATE, CELL_STATE, PROJECTION = SINGLE.output_state, SINGLE.cell_state, SINGLE.projection

#: Matrices, which hybrid kernels take in 8 bits, too.
MATRICES = (*SINGLE.inputs, *SINGLE.recurrent, PROJECTION)
#: Position of a bias -> position of the weights to whose sums it is added: the input's weights, or for the projection's
#: bias those of the hidden state.
BIASES: Mapping[int, int] = dict(
    zip((*SINGLE.biases, SINGLE.projection_bias), (*SINGLE.inputs, PROJECTION), strict=True)
)

#: Element types of float operands by position; x and y have int8.
CELLS_TYPES: Mapping[int, TensorType] = {
    **dict.fromkeys((0, *MATRICES, OUTPUT_STATE), TensorType.INT8),
    **dict.fromkeys((*SINGLE.peepholes, *SINGLE.norms, CELL_STATE), TensorType.INT16),
    **dict.fromkeys(BIASES, TensorType.INT32),
}

#: Gates' sums are Q3.12 without layer normalization.
GATE_SCALE = 2.0**-12
#: The greatest number of integer bits of a cell state that the kernel's tanh takes.
CELL_BITS = 6


def refusal(model: FloatModel, index: int) -> str | None:
    """Return the reason why a cell stays in float; None if it becomes integer."""
    inputs = model.graph.op(index).inputs
    if len(inputs) < 20:
        return "LiteRT has no int8 kernel for its operands"
    if any(t >= 0 for t in inputs[20:]):
        return "layer normalization needs ranges of values inside the cell, which no tensor holds"
    constant = (t in model.constants for p, t in enumerate(inputs) if t >= 0 and p not in (0, OUTPUT_STATE, CELL_STATE))
    return None if all(constant) else "its weights are computed"


def cell_scale(model: FloatModel, index: int) -> float:
    """Return the power of two whose int16 codes hold every cell state of the longest sequence."""
    operator = model.graph.op(index)
    options, shape = operator.options, model.graph.tensors[operator.inputs[0]].shape
    clip = 0.0 if options is None else float(options["cell_clip"])
    steps = 2.0**CELL_BITS
    if operator.name == "UNIDIRECTIONAL_SEQUENCE_LSTM" and len(shape) == 3:
        steps = float(shape[0 if options is not None and options["time_major"] else 1])
    bits = int(np.ceil(np.log2(max(1.0, clip if clip > 0 else steps))))
    return float(2.0 ** (min(bits, CELL_BITS) - 15))


def hidden_params(inputs: Sequence[int], output: Params) -> Params:
    """Return the parameters of the hidden state: those of tanh's range with a projection, else the output's."""
    projected = inputs[PROJECTION] >= 0
    return asymmetric(Range.of(-1.0, 1.0), TensorType.INT8) if projected else output


def intermediates(hidden: Params) -> tuple[Params, ...]:
    """Return the parameters of the five tensors with the scales inside a cell: four gates and the hidden state."""
    return (*[Params.of(TensorType.INT16, GATE_SCALE)] * 4, hidden)


X, FEATURES, TIME, BIAS, STATE = range(5)

#: Element types of operands by position; y has int8.
SVDF_TYPES: Mapping[int, TensorType] = {
    X: TensorType.INT8,
    FEATURES: TensorType.INT8,
    TIME: TensorType.INT16,
    BIAS: TensorType.INT32,
    STATE: TensorType.INT16,
}


def state_params(data: Params, features: Array) -> Params:
    """Return the parameters that hold every state of an input with these parameters; `features` are float weights (F,
    I).
    """
    low, high = code_limits(data.type)
    reach = float(data.scale[0]) * max(high - int(data.zero_point[0]), int(data.zero_point[0]) - low)
    bound = reach * float(np.abs(features.astype(np.float64)).sum(axis=1).max(initial=0.0))
    return symmetric(Range.of(-bound, bound), TensorType.INT16)


@dataclass(frozen=True, slots=True)
class Multiplied:
    """The weights of one operator: their tensor, the dimension of their channels (None: one scale), their bias."""

    operator: int
    data: int  # tensor
    tensor: int
    axis: int | None
    bias: int | None  # tensor; None if the operator has none or it stays float
    position: int
    bias_position: int


def operand_types(model: FloatModel, index: int, mode: Mode) -> tuple[list[TensorType | None], list[TensorType]]:
    """Return the element types of an operator's inputs and outputs in that mode."""
    op = model.graph.op(index)
    inputs = [None if spec is None else TensorType(spec.type) for spec in op.input_specs]
    outputs = [TensorType(spec.type) for spec in op.output_specs if spec is not None]
    types = TYPES[mode]
    if types.data is not None:
        inputs = [
            own_type(op.name, position, mode) if kind == TensorType.FLOAT32 else kind
            for position, kind in enumerate(inputs)
        ]
        outputs = [types.data if kind == TensorType.FLOAT32 else kind for kind in outputs]
    for position in stored_weights(model, index, mode):
        inputs[position] = types.weights
    weights = multiplied(model, index, mode)
    if weights is not None:
        inputs[weights.position] = types.weights
        if weights.bias is not None:
            inputs[weights.bias_position] = types.bias
    return inputs, outputs


def own_type(op: str, position: int, mode: Mode) -> TensorType | None:
    """Return the element type of a float input that is neither weights nor bias; None if it stays float."""
    data = TYPES[mode].data
    if mode == Mode.INT8 and op in CELLS:
        return CELLS_TYPES.get(position)
    if mode == Mode.INT8 and op == "SVDF":
        return SVDF_TYPES.get(position)
    return TensorType.INT8 if data == TensorType.INT16 and position in RULES[op].narrow else data


def stored_weights(model: FloatModel, index: int, mode: Mode) -> dict[int, int | None]:
    """Return constants stored in 8 bits in modes with float data: their positions and dimensions of their scales.

    Tables have a scale for each row. Matrices of cells have one, and only hybrid kernels take them.
    """
    operator = model.graph.op(index)
    op, inputs = operator.name, operator.inputs
    axes: dict[int, int | None] = {}
    if op in TABLES and (mode == Mode.WEIGHTS or (mode == Mode.DYNAMIC and needs_of(op).hybrid is not None)):
        axes = {TABLES[op]: 0}
    elif mode == Mode.DYNAMIC and op in CELLS:
        axes = dict.fromkeys((*MATRICES, *SINGLE.peepholes))
    constant = {p: model.constants.get(inputs[p]) for p in axes if p < len(inputs) and model.is_float(inputs[p])}
    return {p: axes[p] for p, value in constant.items() if value is not None and (op in CELLS or value.ndim > 1)}


def multiplied(model: FloatModel, index: int, mode: Mode) -> Multiplied | None:
    """Return the constant weights of an operator; None if it has none."""
    op = model.graph.op(index)
    rule, inputs = RULES.get(op.name), op.inputs
    weights = None if rule is None else rule.weights
    if weights is None or weights.weights >= len(inputs):
        return None
    tensor = inputs[weights.weights]
    if not model.is_float(tensor) or tensor not in model.constants:
        return None
    return Multiplied(
        operator=index,
        data=inputs[weights.data],
        tensor=tensor,
        axis=weights.axis if TYPES[mode].per_channel else None,
        bias=_bias(model, inputs, weights, mode),
        position=weights.weights,
        bias_position=-1 if weights.bias is None else weights.bias,
    )


def _bias(model: FloatModel, inputs: Sequence[int], weights: Weights, mode: Mode) -> int | None:
    if weights.bias is None or weights.bias >= len(inputs) or TYPES[mode].bias is None:
        return None
    tensor = inputs[weights.bias]
    return tensor if model.is_float(tensor) else None
