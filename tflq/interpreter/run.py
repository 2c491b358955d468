"""Run a plan: a short loop. Tensors are released after their last use unless all of them are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tflq.errors import ModelError, OperatorFailed, TflqError
from tflq.interpreter.plan import Plan, Step
from tflq.interpreter.trace import Trace
from tflq.ir import CARRIER, TensorType
from tflq.kernels.kernel import Array, Operand, Prepared


@dataclass(slots=True, eq=False)
class State:
    """What lives from run to run: variable tensors, and steps bound to shapes that only a run could tell."""

    variables: dict[int, Array] = field(default_factory=dict)
    bound: dict[int, tuple[object, Prepared]] = field(default_factory=dict)


def initial_value(operand: Operand) -> Array:
    """A variable tensor after a reset: zeros, or the zero point for int8.

    Source: LiteRT 2.3 Subgraph::ResetVariableTensors.
    """
    fill = operand.zero_point if operand.type == TensorType.INT8 else 0
    return np.full(operand.shape, fill, CARRIER[operand.type])


def run(plan: Plan, inputs: Mapping[int, Array], state: State | None = None, *, keep_all: bool = False) -> Trace:
    """Execute `plan` on `inputs` (by tensor index, shapes and types as planned) and return its trace.

    The trace holds the graph's inputs and outputs, or every tensor with `keep_all`.
    """
    state = state if state is not None else State()
    trace = Trace(values=dict(inputs))
    for operand in plan.operands:
        if operand.is_variable:
            trace.values[operand.index] = state.variables.setdefault(operand.index, initial_value(operand))
    with np.errstate(all="ignore"):
        for step in plan.steps:
            _run_step(plan, step, state, trace)
            if not keep_all:
                for tensor in step.last_uses:
                    trace.values.pop(tensor, None)
    for tensor in plan.outputs:
        if tensor not in trace.values:
            trace.values[tensor] = _unmade(plan, tensor)
    return trace


def evaluate(prepared: Prepared, step: Step, values: list[Array | None]) -> tuple[Array, ...]:
    """Run one bound operator on its inputs: its outputs, then the new values of the variables it updates."""
    try:
        result = prepared.eval(prepared.data, *values)
    except (TflqError, MemoryError):
        raise
    except Exception as error:
        raise OperatorFailed(step.op, step.index, "eval", f"{type(error).__name__}: {error}") from error
    return result if isinstance(result, tuple) else (result,)


def inputs_of(plan: Plan, step: Step, values: Mapping[int, Array]) -> list[Array | None]:
    """The arrays a step reads, in operand order: from `values`, or the constants of the model."""
    return [None if tensor < 0 else _value(plan, step, tensor, values) for tensor in step.inputs]


def bound(plan: Plan, step: Step, state: State, values: list[Array | None]) -> Prepared:
    """The step's prepared form, bound now if its shapes were not known before; bindings are kept for equal shapes."""
    if step.prepared is not None:
        return step.prepared
    key = tuple(
        None if v is None else (v.shape, v.tobytes() if position in step.kernel.shape_operands else None)
        for position, v in enumerate(values)
    )
    known = state.bound.get(step.index)
    if known is None or known[0] != key:
        known = (key, step.bind(plan.profile.arithmetic, values))
        state.bound[step.index] = known
    return known[1]


def _run_step(plan: Plan, step: Step, state: State, trace: Trace) -> None:
    values = inputs_of(plan, step, trace.values)
    prepared = bound(plan, step, state, values)
    results = evaluate(prepared, step, values)
    outputs = tuple(tensor for tensor in step.outputs if tensor >= 0)
    for tensor, shape, result in zip(outputs, prepared.shapes, results):  # noqa: B905 (updates follow the outputs)
        if shape is not None and result.shape != shape:
            raise OperatorFailed(step.op, step.index, "eval", f"made shape {result.shape}, prepared {shape}")
        trace.values[tensor] = result
        trace.makers[tensor] = step.index
    for position, result in zip(prepared.updates, results[len(outputs) :], strict=True):
        state.variables[step.inputs[position]] = trace.values[step.inputs[position]] = result


def _value(plan: Plan, step: Step, tensor: int, values: Mapping[int, Array]) -> Array:
    value = values.get(tensor)
    if value is None:
        value = plan.operands[tensor].value
    if value is None:
        raise ModelError("is read before it is made", op=step.op, index=step.index, tensor=plan.operands[tensor].name)
    return value


def _unmade(plan: Plan, tensor: int) -> Array:
    """A graph output that no operator makes: a constant, or an input that was passed through."""
    value = plan.operands[tensor].value
    if value is None:
        raise ModelError("graph output is never made", tensor=plan.operands[tensor].name)
    return value
