"""State that lives from run to run, and the initial arrays of a run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.engine.interpreter.footprint import Footprint
from tflq.engine.interpreter.memory import beyond
from tflq.engine.interpreter.plan import Bindings, Plan
from tflq.engine.kernels.kernel import Operand, Shape
from tflq.errors import InputError, ShapeError, TypeMismatchError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


@dataclass(slots=True, eq=False)
class State:
    """State that lives from run to run.

    It consists of variable tensors, steps bound to shapes that are known only at run time, the operators' memory,
    resources, and the routine of the latest plan. Another State may share the resources.
    """

    variables: dict[int, Array] = field(default_factory=dict)
    bound: Bindings = field(default_factory=dict)
    memory: dict[object, Any] = field(default_factory=dict)
    resources: dict[Hashable, Any] = field(default_factory=dict)
    known: Plan | None = None
    routine: Any = None  # of that plan; None if there is none
    called: dict[int, tuple[Plan, Any]] = field(default_factory=dict)  # plans and routines of subgraphs, by number
    inputs: Mapping[int, Array] | None = None  # the inputs of every run; None if they change between runs


def check_resources(plan: Plan, state: State, live_bytes: int, place: str = "") -> None:
    """Compare the memory of variables with handles, together with `live_bytes` of tensors, with the limit."""
    if state.resources:
        taken = Footprint()
        taken.add(*state.resources.values())
        if taken.bytes + live_bytes > plan.limits.memory:
            raise beyond(place, taken.bytes + live_bytes, plan.limits.memory, "variables that have handles")


def initial_value(operand: Operand) -> Array:
    """Return a variable tensor's value after a reset: zeros, or the zero point for int8, cut to eight bits.

    Source: LiteRT 2.3 ResetVariableTensor.
    """
    fill = operand.zero_point if operand.type == TensorType.INT8 else 0
    return np.full(operand.shape, np.int64(fill).astype(CARRIER[operand.type]))


def variable(plan: Plan, state: State, tensor: int) -> Array:
    """Return the present value of a variable tensor."""
    operand, value = plan.operands[tensor], state.variables.get(tensor)
    if value is None:
        value = state.variables[tensor] = initial_value(operand)
    else:
        _check_carried(operand, operand.shape, value)
    return value


def check_inputs(plan: Plan, inputs: Mapping[int, Array]) -> None:
    """Raise unless the arrays match the graph's inputs in the planned form: nothing is converted here."""
    for tensor, shape in plan.expected.items():
        operand, value = plan.operands[tensor], inputs.get(tensor)
        if value is None:
            raise InputError("no value is given", name=_name(operand))
        _check_carried(operand, shape, value)
    if len(inputs) != len(plan.expected):
        tensor = min(inputs.keys() - plan.expected.keys())
        raise InputError("is not an input of the graph", name=_name(plan.operands[tensor]))


def _check_carried(operand: Operand, shape: Shape | None, value: Array) -> None:
    if value.dtype != CARRIER[operand.type]:
        raise TypeMismatchError(_name(operand), CARRIER[operand.type], value.dtype)
    if shape is not None and value.shape != shape:
        raise ShapeError(_name(operand), shape, value.shape)


def _name(operand: Operand) -> str:
    return operand.name or f"#{operand.index}"
