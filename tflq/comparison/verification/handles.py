"""Operators that reach variables and tables by handles: run with the resources of one interpreter.

A handle means something only next to the resources of the subgraph that made it, so these operators run as steps of
the whole subgraph's plan, on the values that the comparison gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tflq.engine.interpreter import Plan, State, make_plan
from tflq.engine.interpreter.execution import run_step
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, OperatorView, view
from tflq.model.ir.signatures import call, reach
from tflq.model.surgery.cut import OPAQUE
from tflq.typing import Array


@dataclass(slots=True, eq=False)
class Memory:
    """State that lives from step to step of a sequence: variable tensors by index, and the state with the resources."""

    variables: dict[int, Array] = field(default_factory=dict)
    state: State = field(default_factory=State)


@dataclass(eq=False)
class Handled:
    """The operators of a subgraph whose operands are handles, or that run such operators."""

    model: Model
    subgraph: int
    profile: Profile

    @cached_property
    def operators(self) -> frozenset[int]:
        """Their indices."""
        return frozenset(op.index for op in view(self.model, self.subgraph).ops if _reaches(self.model, op))

    def run(self, index: int, given: Mapping[int, Array], state: State) -> tuple[Plan, dict[int, Array]]:
        """Return the plan and the operator's results by tensor; `given` are its operands that are not constants."""
        plan = self._plan(given)
        step = next(step for step in plan.steps if step.index == index)
        values: list[Array | None] = list(plan.constants)
        for tensor, value in given.items():
            values[tensor] = value
        run_step(plan, step, state, values)
        return plan, {t: result for t in step.outputs if (result := values[t]) is not None}

    def _plan(self, given: Mapping[int, Array]) -> Plan:
        graph = view(self.model, self.subgraph)
        shapes = {t: value.shape for t, value in given.items() if t in graph.inputs}
        key = tuple(sorted(shapes.items()))
        if key not in self._plans:
            self._plans[key] = make_plan(self.model, self.profile, self.subgraph, shapes)
        return self._plans[key]

    @cached_property
    def _plans(self) -> dict[object, Plan]:
        return {}


def has_results(op: OperatorView) -> bool:
    """Return whether an operator has a result that can be read."""
    return any(op.graph.tensors[t].type not in OPAQUE for t in op.writes)


def _reaches(model: Model, op: OperatorView) -> bool:
    """Return whether an operator, or one of a subgraph that it runs, has a handle."""
    inner = (view(model, k).ops for k in reach(model, set(call(op.record))))
    return any(_has_handle(one) for one in (op, *(each for ops in inner for each in ops)))


def _has_handle(op: OperatorView) -> bool:
    specs = (*op.input_specs, *op.output_specs)
    return op.builtin == "CALL_ONCE" or any(spec is not None and spec.type in OPAQUE for spec in specs)
