"""Operators on two activations, spelled with ADD, SUB and MUL, which have portable scales, and tables."""

from __future__ import annotations

import numpy as np

from tflq.model.ir import OperatorView, TensorType
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.rewrite import Rewrite, rewrite_of

WHY = "runtimes round its kernel in different ways; the difference or product is portable, the rest is a table"


def squared_difference_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a SQUARED_DIFFERENCE of two activations as SUB and SQUARE."""
    if not _is_of_activations(operator):
        return None
    inputs, result = [editing.new(t) for t in operator.inputs], editing.new(operator.outputs[0])
    difference = editing.tensor(operator.output(), "/difference")
    editing.operator("SUB", inputs, [difference], operator.index, "SubOptions", pot_scale_int16=False)
    editing.operator("SQUARE", [difference], [result], operator.index, "SquareOptions")
    return rewrite_of(operator, ["SUB", "SQUARE"], WHY, 0)


def quotient_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a DIV of two activations as a product with the reciprocal."""
    if not _is_of_activations(operator) or operator.options is None:
        return None
    dividend, divisor = (editing.new(t) for t in operator.inputs)
    reciprocal = editing.tensor(editing.spec(divisor), "/reciprocal")
    one = editing.constant("one", np.ones(1, np.float32))
    editing.operator("DIV", [one, divisor], [reciprocal], operator.index, "DivOptions")
    fused = int(operator.options["fused_activation_function"])
    result, options = editing.new(operator.outputs[0]), "MulOptions"
    factors = [dividend, reciprocal]
    editing.operator("MUL", factors, [result], operator.index, options, fused_activation_function=fused)
    return rewrite_of(operator, ["DIV", "MUL"], WHY, 0)


def _is_of_activations(operator: OperatorView) -> bool:
    """Return whether an operator reads two computed float tensors."""
    graph = operator.graph
    specs = (graph.tensors[t] for t in operator.inputs)
    is_float = all(spec.type == TensorType.FLOAT32 for spec in specs)
    return is_float and len(operator.inputs) == 2 and all(graph.constant(t) is None for t in operator.inputs)
