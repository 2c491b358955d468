"""The role of each operand of an operator: activation, weights, bias, or unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.engine.kernels.facts.fact import Weights
from tflq.engine.kernels.facts.rules import RULES, TABLES
from tflq.engine.kernels.facts.versions import needs_of
from tflq.engine.kernels.families.recurrent.lstm_operands import SINGLE
from tflq.model.ir import TensorType
from tflq.quantization.recipe.recipe import TYPES, Mode
from tflq.quantization.scheme import cells, svdf
from tflq.quantization.scheme.cells import CELLS
from tflq.quantization.scheme.float_graph import FloatModel


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
        return cells.TYPES.get(position)
    if mode == Mode.INT8 and op == "SVDF":
        return svdf.TYPES.get(position)
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
        axes = dict.fromkeys((*cells.MATRICES, *SINGLE.peepholes))
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
