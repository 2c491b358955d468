"""LSTM cells on 8-bit activations: the roles of their operands, and the scales that need no calibration.

LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM compute with an int8 state that is their output, an int16 cell state whose scale
is a power of two, and gates in Q3.12. A cell state grows by at most 1 per step, so the number of steps bounds it.

Source: LiteRT 2.3 tflite/kernels/unidirectional_sequence_lstm.cc, lstm.cc PopulateQuantizedLstmParams8x8_16;
tflite/converter/tools/optimize/operator_property.cc (operands of LSTM).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.engine.kernels.families.recurrent.lstm_operands import SINGLE
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric
from tflq.quantization.scheme.float_graph import FloatModel

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
TYPES: Mapping[int, TensorType] = {
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
