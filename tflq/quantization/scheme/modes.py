"""Select the operators that become integer, their modes, and the reasons why others stay in float."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.engine.kernels.facts.rules import BROKEN, CONVERSIONS, KEPT_FLOAT, READS_SHAPES, RULES
from tflq.engine.kernels.facts.versions import need, needs_of
from tflq.engine.kernels.table import find
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType
from tflq.quantization.recipe.recipe import BLOCK, TYPES, WITH_EIGHT_BITS, Mode
from tflq.quantization.scheme import cells, svdf
from tflq.quantization.scheme.cells import CELLS
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.operands import Multiplied, multiplied, operand_types, stored_weights

#: The profile whose kernels decide which operators have an integer form.
REFERENCE_PROFILE = "litert-ref"


def modes_of(
    model: FloatModel, mode: Mode, kept_float: Mapping[int, str]
) -> tuple[tuple[Mode | None, ...], dict[int, str]]:
    """Return each operator's mode, and the reasons, by index, why operators on float data stay in float."""
    modes: list[Mode | None] = []
    reasons = dict(kept_float)
    for index in range(len(model.graph.ops)):
        own = _own_mode(model, index, mode)
        reason = reasons.get(index) or _refusal(model, index, own)
        if reason:
            reasons[index] = reason
        modes.append(None if reason is not None else own)
    return tuple(modes), {index: reason for index, reason in reasons.items() if reason}


def _own_mode(model: FloatModel, index: int, mode: Mode) -> Mode:
    """Return the mode in which an operator computes: with weights of eight bits if its kernel takes none of four."""
    wider = WITH_EIGHT_BITS.get(mode)
    if wider is None:
        return mode
    weights = multiplied(model, index, mode)
    narrow = weights is not None and (
        _has_blocks(model, index, weights) if mode is Mode.DYNAMICX4 else needs_of(model.graph.op(index).name).int4 > 1
    )
    return mode if narrow and _refusal(model, index, mode) is None else wider


def _has_blocks(model: FloatModel, index: int, weights: Multiplied) -> bool:
    """Return whether an operator's weights have whole blocks, and XNNPACK takes them: those of a FULLY_CONNECTED."""
    shape = model.constants[weights.tensor].shape
    return (
        model.graph.op(index).name == "FULLY_CONNECTED" and len(shape) == 2 and shape[1] > 0 and shape[1] % BLOCK == 0
    )


def _refusal(model: FloatModel, index: int, mode: Mode) -> str | None:
    """Return the reason why an operator stays in float.

    The reason is empty if it holds no float data, and None if it becomes integer.
    """
    operator, types = model.graph.op(index), TYPES[mode]
    op = operator.name
    weights = multiplied(model, index, mode)
    if op in READS_SHAPES | CONVERSIONS or not any(model.is_float(t) for t in (*operator.inputs, *operator.outputs)):
        return ""
    if types.data is None and weights is None and not stored_weights(model, index, mode):
        return ""
    if op not in RULES:
        return KEPT_FLOAT.get(op, "LiteRT has no integer kernel for it")
    if weights is not None and weights.bias is not None and weights.bias not in model.constants:
        return "its bias is computed"
    if op in CELLS and mode == Mode.INT8 and (reason := cells.refusal(model, index)):
        return reason
    if op == "SVDF" and any(operator.inputs[p] not in model.constants for p in (svdf.FEATURES, svdf.TIME)):
        return "its weights are computed"
    if types.data == TensorType.UINT8 and RULES[op].fills:
        return "its kernel writes code 0 for the value 0, which uint8 activations cannot all have"
    if types.data is not None and (op, types.data) in BROKEN:
        return BROKEN[op, types.data]
    inputs, outputs = operand_types(model, index, mode)
    kernels = by_name(REFERENCE_PROFILE).kernels
    if mode == Mode.WEIGHTS or find(kernels, op, need(op, inputs), inputs, outputs) is not None:
        return None
    return f"LiteRT has no {mode.value} kernel for its operands"
