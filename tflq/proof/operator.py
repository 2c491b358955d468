"""One operator of a model, alone, bound to a profile, and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.comparison.inspection.difference import difference
from tflq.engine.interpreter import Plan, State, Step, make_plan, run
from tflq.errors import TflqError, UndefinedResultError, brief
from tflq.model.ir import CARRIER, Model
from tflq.model.surgery.tap import single_operator
from tflq.proof.verdicts import Witness
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The distinct values that a tensor can hold, as its array has them, and the operators that limit them."""

    values: Array
    makers: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """An operator under a profile. `tensors` are the model's indices of the operator's own.

    `held` has the inputs, by its own indices, that cannot hold every value of their type in the model.
    """

    profile: str
    plan: Plan
    tensors: tuple[int, ...]
    held: Mapping[int, Held] = field(default_factory=dict)
    _state: State = field(default_factory=State)  # of an operator without state: its arrays serve every run

    @property
    def step(self) -> Step:
        """Its only step."""
        return self.plan.steps[0]

    @property
    def inputs(self) -> tuple[int, ...]:
        """Its input tensors, by its own indices."""
        return self.plan.inputs

    def dtype(self, tensor: int) -> np.dtype[Any]:
        """Return the dtype of a tensor's array."""
        return np.dtype(CARRIER[self.plan.operands[tensor].type])

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self.plan.operands[tensor].shape

    def run(self, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Return its outputs, by its own tensor indices."""
        return run(self.plan, inputs, self._state).values


#: The reason why an operator whose operands change between runs is not decided.
UNKNOWN_SHAPES = "its shapes are known only when it runs"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why an operator cannot be decided under a profile."""

    profile: str
    reason: str


def bind(model: Model, index: int, profile: Any, held: Mapping[int, Held] | None = None) -> Bound | Refusal:
    """Bind operator `index` of the first subgraph under `profile`, or return the reason why it cannot be decided.

    A bound operator has all its shapes before it runs, no state, and readable outputs. `held` are the tensors of the
    model, by index, that cannot hold every value of their type.
    """
    alone, tensors = single_operator(model, index)
    try:
        plan = make_plan(alone, profile)
    except TflqError as error:
        return Refusal(profile.name, f"refused by {profile.name}: {_brief(error)}")
    step = plan.steps[0]
    if step.kernel.session or plan.variables:
        return Refusal(profile.name, "reaches beyond its operands")
    if step.prepared is None:
        return Refusal(profile.name, UNKNOWN_SHAPES)
    if not step.outputs or set(plan.outputs) != set(step.outputs) or set(plan.inputs) & set(plan.outputs):
        return Refusal(profile.name, "it has no outputs of its own to compare")
    if step.kernel.exactness.word == "close":
        return Refusal(profile.name, f"{profile.name} promises it only close: {step.kernel.exactness.reason}")
    known = held or {}
    limited = {own: known[tensor] for own, tensor in enumerate(tensors) if own in plan.inputs and tensor in known}
    return Bound(profile.name, plan, tensors, limited)


def _brief(error: TflqError) -> str:
    return brief(error).split(": ", 1)[-1]


def compare(first: Bound, second: Bound, inputs: Mapping[int, Array], accumulator: int | None = None) -> Witness | None:
    """Run both on `inputs`, by the operator's own indices; None if all outputs are equal.

    Raises:
        TflqError: One of the two refuses these values, or gives outputs of another type or shape.
    """
    one, other = first.run(inputs), second.run(inputs)
    for tensor in first.step.outputs:
        codes = one[tensor]
        if _are_alike(codes, other[tensor]):
            continue
        apart = difference(codes, other[tensor])
        if apart.problem:
            raise UndefinedResultError(first.step.op, apart.problem)
        if apart.first is not None:
            return Witness(
                inputs={first.tensors[t]: value for t, value in inputs.items()},
                output=first.tensors[tensor],
                element=apart.first.index,
                first=codes[apart.first.index].item(),
                second=other[tensor][apart.first.index].item(),
                count=apart.differing,
                accumulator=accumulator,
            )
    return None


def _are_alike(first: Array, second: Array) -> bool:
    """Return whether all bytes agree, which is fast to check."""
    is_plain = first.dtype == second.dtype and first.shape == second.shape and not first.dtype.hasobject
    return is_plain and first.tobytes() == second.tobytes()
