"""Let a convolution or dense operator absorb the constants that are added to its result or multiplied with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.facts.rules import RULES
from tflq.model.ir import Model, OperatorView, view
from tflq.quantization.portable.forms.channels import Floats, channels_of
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.functions import Reals
from tflq.quantization.portable.forms.rewrite import Rewrite, Rewritten

WHY = "constants of a convolution need no rounding of their own"
#: Operator -> (position of weights, their dimension of output channels, position of the bias).
LINEAR: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        op: (rule.weights.weights, rule.weights.axis, rule.weights.bias)
        for op, rule in RULES.items()
        if rule.weights is not None and rule.weights.axis is not None and rule.weights.bias is not None
    }
)
_ABSORBED = frozenset({"ADD", "SUB", "MUL", "DIV"})


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """A linear operator with what it has absorbed: the result is activation(weights * data + bias)."""

    operator: OperatorView
    weights: Floats
    bias: Floats
    result: int
    fused: int
    absorbed: tuple[OperatorView, ...] = ()


def with_constants_absorbed(model: Model) -> Rewritten:
    """Return the model with ADD, SUB, MUL and DIV by constants folded into the linear operator before them."""
    editing, rewrites, gone = Editing(model), list[Rewrite](), set[int]()
    for operator in editing.graph.ops:
        linear = _linear(operator)
        linear = None if linear is None else _follow(linear)
        if linear is not None and linear.absorbed:
            _write(editing, linear)
            gone.update(other.index for other in linear.absorbed)
            rewrites.extend(_rewrite(operator, other) for other in linear.absorbed)
        elif operator.index not in gone:
            editing.copy(operator)
    if not rewrites:
        return Rewritten(model, (), tuple(range(len(view(model).ops))))
    return Rewritten(editing.result(), tuple(rewrites), editing.origins)


def _linear(operator: OperatorView) -> _Linear | None:
    """Return an operator with constant float weights and bias, and no activation; None for any other."""
    if operator.name not in LINEAR or operator.options is None:
        return None
    graph, (weights_at, axis, bias_at) = operator.graph, LINEAR[operator.name]
    if len(operator.inputs) <= weights_at or operator.options.get("fused_activation_function", 0):
        return None
    weights = graph.constant(operator.inputs[weights_at])
    if weights is None or weights.dtype != np.float32 or weights.ndim <= axis:
        return None
    count = weights.shape[axis]
    if operator.name == "TRANSPOSE_CONV" and not _has_bias(operator):  # a bias would need another version
        return None
    bias = graph.constant(operator.inputs[bias_at]) if _has_bias(operator) else np.zeros(count, np.float32)
    if bias is None or bias.dtype != np.float32 or bias.size != count:
        return None
    return _Linear(operator, weights, bias.reshape(-1), operator.outputs[0], 0)


def _has_bias(operator: OperatorView) -> bool:
    position = LINEAR[operator.name][2]
    return len(operator.inputs) > position and operator.inputs[position] >= 0


def _follow(linear: _Linear) -> _Linear:
    """Return the operator with all that it can absorb: what alone reads its result, until an activation."""
    graph = linear.operator.graph
    while not linear.fused and linear.result not in graph.outputs:
        readers = graph.readers(linear.result)
        further = _with(linear, readers[0]) if len(readers) == 1 else None
        if further is None:
            break
        linear = further
    return linear


def _with(linear: _Linear, operator: OperatorView) -> _Linear | None:
    """Return a linear operator that has absorbed the next one; None if it cannot."""
    if operator.name not in _ABSORBED or operator.options is None or len(operator.inputs) != 2:
        return None
    first = operator.inputs[0] == linear.result
    values = channels_of(operator, operator.inputs[1 if first else 0], linear.result)
    if values is None or (operator.name == "DIV" and (not first or not values.all())):
        return None
    scale, shift = _affine(operator.name, first, values)
    _, axis, _ = LINEAR[linear.operator.name]
    along = [-1 if d == axis else 1 for d in range(linear.weights.ndim)]
    return replace(
        linear,
        weights=(linear.weights * np.broadcast_to(scale, linear.bias.shape).reshape(along)).astype(np.float32),
        bias=(linear.bias * scale + shift).astype(np.float32),
        result=operator.outputs[0],
        fused=int(operator.options["fused_activation_function"]),
        absorbed=(*linear.absorbed, operator),
    )


def _affine(name: str, first: bool, values: Floats) -> tuple[Reals, Reals]:
    """Return scale and shift that an operator applies to its computed operand, which is the first one or not."""
    wide, one, zero = values.astype(np.float64), np.ones(1), np.zeros(1)
    if name in ("MUL", "DIV"):
        return (wide if name == "MUL" else 1 / wide), zero
    if name == "ADD":
        return one, wide
    return (one, -wide) if first else (-one, wide)


def _write(editing: Editing, linear: _Linear) -> None:
    operator = linear.operator
    weights_at, _, bias_at = LINEAR[operator.name]
    name = editing.graph.tensors[linear.result].name or operator.name
    inputs = [editing.new(t) for t in operator.inputs]
    inputs += [-1] * (bias_at + 1 - len(inputs))
    inputs[weights_at] = editing.constant(f"{name}/weights", linear.weights)
    inputs[bias_at] = editing.constant(f"{name}/bias", linear.bias)
    editing.copy(operator, None, inputs, [editing.new(linear.result)], fused_activation_function=linear.fused)


def _rewrite(operator: OperatorView, other: OperatorView) -> Rewrite:
    name = other.output().name or ""
    return Rewrite(other.index, other.name, name, f"part of {operator.name} {operator.index}", WHY, 0)
