"""Run a plan: a short loop. Tensors are released after their last use unless all of them are asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.errors import OperatorFailed, TflqError
from tflq.interpreter.memory import check_outputs
from tflq.interpreter.plan import Plan, Step
from tflq.interpreter.program import Bindings, Program, Shapes
from tflq.interpreter.trace import Trace
from tflq.ir import CARRIER, TensorType
from tflq.kernels.kernel import Array, Operand, Prepared, Session


@dataclass(slots=True, eq=False)
class State:
    """What lives from run to run: variable tensors, steps bound to shapes that only a run could tell, what operators
    remember, and the resources, which may be handed on to another State.
    """

    variables: dict[int, Array] = field(default_factory=dict)
    bound: Bindings = field(default_factory=dict)
    memory: dict[object, Any] = field(default_factory=dict)
    resources: dict[Hashable, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    """What kernels reach while a plan runs: a tflq.kernels.kernel.Session."""

    program: Program
    memory: dict[object, Any]
    resources: dict[Hashable, Any]

    def enter(self, subgraph: int) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
        """A subgraph, to be called with its inputs, which begins with fresh variables."""
        return _Call(self.program, subgraph, self.resources)


class _Call:
    """A subgraph that was entered. Inputs whose shapes change are planned for as changing, not once for each shape."""

    def __init__(self, program: Program, subgraph: int, resources: dict[Hashable, Any]) -> None:
        self._program, self._subgraph, self._resources = program, subgraph, resources
        self._shapes: tuple[Any, ...] | None = None
        self._planned: Shapes = ()

    def __call__(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        shapes = tuple(x.shape for x in inputs)
        if shapes != self._shapes:
            self._begin(shapes)
        values = _execute(self._plan, dict(zip(self._plan.inputs, inputs, strict=True)), self._state, False)
        return tuple(values[tensor] for tensor in self._plan.outputs)  # type: ignore[misc]  # outputs are kept

    def _begin(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        if self._shapes is None:
            self._planned = shapes
        else:
            self._planned = tuple(p if p == s else None for p, s in zip(self._planned, shapes, strict=True))
        self._shapes = shapes
        self._plan, bound = self._program.plan(self._subgraph, self._planned)
        self._state = State(bound=bound, resources=self._resources)


def initial_value(operand: Operand) -> Array:
    """A variable tensor after a reset: zeros, or the zero point for int8.

    Source: LiteRT 2.3 ResetVariableTensor.
    """
    fill = operand.zero_point if operand.type == TensorType.INT8 else 0
    return np.full(operand.shape, fill, CARRIER[operand.type])


def variable(plan: Plan, state: State, tensor: int) -> Array:
    """The present value of a variable tensor."""
    value = state.variables.get(tensor)
    if value is None:
        value = state.variables[tensor] = initial_value(plan.operands[tensor])
    return value


def run(plan: Plan, inputs: Mapping[int, Array], state: State | None = None, *, keep_all: bool = False) -> Trace:
    """Execute `plan` on `inputs` (by tensor index, shapes and types as planned) and return its trace.

    The trace holds the graph's outputs; with `keep_all` its inputs, variables and every tensor that an operator made.
    """
    with np.errstate(all="ignore"):
        values = _execute(plan, inputs, state if state is not None else State(), keep_all)
    kept = {*inputs, *plan.variables, *plan.makers, *plan.outputs} if keep_all else plan.outputs
    held = {tensor: array for tensor in sorted(kept) if (array := values[tensor]) is not None}
    return Trace(held, {tensor: plan.makers[tensor] for tensor in held if tensor in plan.makers}, plan.promises)


def _execute(plan: Plan, inputs: Mapping[int, Array], state: State, keep_all: bool) -> list[Array | None]:
    """Run all steps; the values by tensor index, as far as they are kept."""
    values: list[Array | None] = list(plan.constants)
    for tensor in plan.variables:
        values[tensor] = variable(plan, state, tensor)
    for tensor, value in inputs.items():
        values[tensor] = value
    session = _Session(plan.program, state.memory, state.resources)
    for step in plan.steps:
        _run_step(plan, step, state, values, session)
        if not keep_all:
            for tensor in step.last_uses:
                values[tensor] = None
    return values


def evaluate(
    prepared: Prepared, step: Step, values: Sequence[Array | None], session: Session | None = None
) -> tuple[Array, ...]:
    """Run one bound operator on its inputs: its outputs, then the new values of the variables it updates."""
    try:
        if step.kernel.session:
            result = prepared.eval(prepared.data, session, *values)
        else:
            result = prepared.eval(prepared.data, *values)
    except (TflqError, MemoryError):
        raise
    except Exception as error:
        raise OperatorFailed(step.op, step.index, "eval", f"{type(error).__name__}: {error}") from error
    results = _arrays(result)
    if len(results) != len(step.outputs) + len(prepared.updates):
        raise OperatorFailed(step.op, step.index, "eval", f"made {len(results)} arrays")
    return results


def _arrays(result: Any) -> tuple[Array, ...]:
    """The arrays that an eval gave; NumPy makes scalars of what has no dimensions, so those are wrapped again."""
    if isinstance(result, np.ndarray):
        return (result,)
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)


def inputs_of(plan: Plan, step: Step, values: Mapping[int, Array]) -> list[Array | None]:
    """The arrays a step reads, in operand order: from `values`, or the constants of the model."""
    constants = plan.constants
    return [values.get(tensor, constants[tensor]) for tensor in step.inputs]


def bound(plan: Plan, step: Step, state: State, values: Sequence[Array | None]) -> Prepared:
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
        check_outputs(step.node.outputs, known[1].shapes, plan.memory_limit, step.place)
        state.bound[step.index] = known
    return known[1]


def _run_step(plan: Plan, step: Step, state: State, values: list[Array | None], session: Session) -> None:
    arguments = [values[tensor] for tensor in step.inputs]
    prepared = step.prepared or bound(plan, step, state, arguments)
    results = evaluate(prepared, step, arguments, session)
    for tensor, shape, result in zip(step.outputs, prepared.shapes, results):  # noqa: B905 (updates follow the outputs)
        if shape is not None and result.shape != shape:
            raise OperatorFailed(step.op, step.index, "eval", f"made shape {result.shape}, prepared {shape}")
        values[tensor] = result
    for position, result in zip(prepared.updates, results[len(step.outputs) :], strict=True):
        tensor = step.inputs[position]
        state.variables[tensor] = values[tensor] = result
