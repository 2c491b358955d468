"""Fold what a model computes from the shapes of its tensors into constants.

The shapes are those in the file. If one of them is declared to change, as the number of images often is, it is fixed:
what is proved of a model holds for the shapes in the file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, OperatorView, TensorType, view
from tflq.model.surgery.cut import cut
from tflq.model.surgery.edit import with_tensors
from tflq.quantization.portable.forms.editing import Editing, compose
from tflq.quantization.portable.forms.rewrite import Rewrite, Rewritten
from tflq.typing import Array

_PROFILE = "litert-ref"
_INTEGERS = (TensorType.INT32, TensorType.INT64, TensorType.BOOL)
WHY = "it computes with shapes, which are fixed to those in the file"


def with_shapes_folded(model: Model) -> Rewritten:
    """Return the model without operators that compute with nothing but shapes and constants of integers or truths."""
    changed = Rewritten(model, (), tuple(range(len(view(model).ops))))
    if not any(operator.name == "SHAPE" for operator in view(model).ops):
        return changed
    while True:  # a folded shape makes the shapes behind a RESHAPE known
        folded = _fold_once(_with_fixed_shapes(changed.model))
        if not folded.rewrites:
            return changed
        changed = compose(changed, folded)


def _with_fixed_shapes(model: Model) -> Model:
    """Return the model whose tensors have the shapes that follow from those of its inputs, and no others."""
    plan, graph = make_plan(model, by_name(_PROFILE)), view(model)
    shapes = {t: tuple(plan.operands[t].shape) for t in range(len(graph.tensors)) if plan.known[t]}
    specs = {t: replace(graph.tensors[t], shape=shape, shape_signature=None) for t, shape in shapes.items()}
    return with_tensors(model, specs)


def _fold_once(model: Model) -> Rewritten:
    editing, values, rewrites = Editing(model), dict[int, Array](), list[Rewrite]()
    plan = make_plan(model, by_name(_PROFILE))
    for operator in editing.graph.ops:
        found = _value(model, operator, values, plan)
        if found is None:
            editing.copy(operator)
            continue
        output = operator.outputs[0]
        values[output] = found
        name = editing.graph.tensors[output].name or operator.name
        editing.replace(output, editing.constant(name, found))
        rewrites.append(Rewrite(operator.index, operator.name, name, "a constant", WHY, found.nbytes))
    return Rewritten(editing.result(), tuple(rewrites), editing.origins)


def _value(model: Model, operator: OperatorView, values: dict[int, Array], plan: Plan) -> Array | None:
    """Return the integers that an operator computes from shapes; None if it does something else."""
    graph, outputs = operator.graph, operator.outputs
    if len(outputs) != 1 or graph.tensors[outputs[0]].type not in _INTEGERS or outputs[0] in graph.outputs:
        return None
    if operator.name == "SHAPE":
        tensor = operator.inputs[0]
        dtype = np.int32 if graph.tensors[outputs[0]].type == TensorType.INT32 else np.int64
        return np.array(plan.operands[tensor].shape, dtype) if plan.known[tensor] else None
    read = [t for t in operator.inputs if t >= 0]
    if not any(t in values for t in read) or any(t not in values and graph.constant(t) is None for t in read):
        return None
    part, tensors = cut(model, [operator.index])
    inputs = {i: values[tensors[i]] for i in view(part).inputs}
    shapes = {i: value.shape for i, value in inputs.items()}
    return run(make_plan(part, by_name(_PROFILE), input_shapes=shapes), inputs).values[view(part).outputs[0]]
