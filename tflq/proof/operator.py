"""One operator alone under a profile, and the verdict on it.

The verdict on an operator under two profiles.

One operator of a model, alone, bound to a profile, and run.

Check that an operator has the same operands in its model as alone.

A proof is about shapes and constants. An operator alone has those in the file. In the model, other operators may
compute its shapes at run time, or write to a tensor whose buffer has data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from tflq.comparison.inspection.difference import difference
from tflq.engine.interpreter import Plan, State, Step, make_plan, run
from tflq.engine.interpreter.fusions import fusions
from tflq.engine.profiles import Profile
from tflq.errors import TflqError, UndefinedResultError, brief
from tflq.model.ir import CARRIER, Model, view
from tflq.model.ir.signatures import place_of
from tflq.model.surgery.tap import single_operator
from tflq.typing import Array

#: The end of a reason if profiles are equal, but runtimes only with the same libm.
ON_ONE_LIBM = ", on the same libm"


class Word(str, Enum):
    """The three verdicts."""

    EQUAL = "equal"  # proved for every input
    DIFFERS = "differs"  # an input was found and run under both profiles
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Inputs on which two profiles give different outputs, as both were run.

    `inputs` are by tensor index of the model. `output` is the tensor, `element` the first index in it at which they
    differ, `count` the number of differing elements. `first` and `second` are the values of the two profiles there.
    """

    inputs: Mapping[int, Array]
    output: int
    element: tuple[int, ...]
    first: float | int
    second: float | int
    count: int
    accumulator: int | None = None  # the target of the input's construction, without the bias; None if there was none


@dataclass(frozen=True, slots=True, eq=False)
class ProfileVerdict:
    """One operator under two profiles. `reason` describes the proof, the difference, or the obstacle."""

    first: str
    second: str
    word: Word
    reason: str
    witness: Witness | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OperatorProof:
    """One operator under several profiles. `index` counts in its subgraph.

    `verdicts` compare the first profile with each of the others. `groups` are the profiles that are proved to give the
    same bits for every input, the first profile's group first; those that refuse the operator are in none.
    `accumulators` are the lowest and highest sum of products with its bias, None for operators without such sums.
    """

    index: int
    op: str
    verdicts: tuple[ProfileVerdict, ...]
    subgraph: int = 0
    groups: tuple[tuple[str, ...], ...] = ()
    accumulators: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """Its index, after that of its subgraph if this is not the first."""
        return place_of(self.subgraph, self.index)

    @property
    def word(self) -> Word:
        """The verdict on all profiles: any difference first, then anything undecided."""
        words = {v.word for v in self.verdicts}
        return next((w for w in (Word.DIFFERS, Word.UNDECIDED) if w in words), Word.EQUAL)

    @property
    def methods(self) -> tuple[str, ...]:
        """The reasons of its verdicts, each once."""
        return tuple(dict.fromkeys(v.reason for v in self.verdicts))


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The distinct values that a tensor can hold, as its array has them, and the operators that limit them."""

    values: Array
    makers: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BoundOperator:
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
class Undecidable:
    """The reason why an operator cannot be decided under a profile."""

    profile: str
    reason: str


def bind(model: Model, index: int, profile: Any, held: Mapping[int, Held] | None = None) -> BoundOperator | Undecidable:
    """Bind operator `index` of the first subgraph under `profile`, or return the reason why it cannot be decided.

    A bound operator has all its shapes before it runs, no state, and readable outputs. `held` are the tensors of the
    model, by index, that cannot hold every value of their type.
    """
    alone, tensors = single_operator(model, index)
    try:
        plan = make_plan(alone, profile)
    except TflqError as error:
        return Undecidable(profile.name, f"refused by {profile.name}: {_brief(error)}")
    step = plan.steps[0]
    if step.kernel.session or plan.variables:
        return Undecidable(profile.name, "reaches beyond its operands")
    if step.prepared is None:
        return Undecidable(profile.name, UNKNOWN_SHAPES)
    if not step.outputs or set(plan.outputs) != set(step.outputs) or set(plan.inputs) & set(plan.outputs):
        return Undecidable(profile.name, "it has no outputs of its own to compare")
    if step.kernel.exactness.word == "close":
        return Undecidable(profile.name, f"{profile.name} promises it only close: {step.kernel.exactness.reason}")
    known = held or {}
    limited = {own: known[tensor] for own, tensor in enumerate(tensors) if own in plan.inputs and tensor in known}
    return BoundOperator(profile.name, plan, tensors, limited)


def _brief(error: TflqError) -> str:
    return brief(error).split(": ", 1)[-1]


def compare(
    first: BoundOperator, second: BoundOperator, inputs: Mapping[int, Array], accumulator: int | None = None
) -> Witness | None:
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


class ModelContext:
    """The first subgraph of a model as a whole, bound under the first of the profiles that takes it."""

    def __init__(self, model: Model, profiles: Sequence[Profile]) -> None:
        self._graph = view(model)
        self._fused: dict[int, tuple[Profile, Mapping[int, tuple[int, ...]]]] = {}
        self._written = Counter(t for op in self._graph.ops for t in op.writes)
        self._written.update(self._graph.inputs)
        self._written.update(t for t, spec in enumerate(self._graph.tensors) if spec.is_variable)
        bound = (_declared(model, profile) for profile in profiles)
        unsigned = {i for i, spec in enumerate(self._graph.tensors) if -1 not in (spec.shape_signature or ())}
        self._declared = next((tensors for tensors in bound if tensors is not None), unsigned)

    def objection(self, index: int, profile: Profile) -> str:
        """Return the reason why an operator alone, under a profile, proves nothing in the model; empty if it does."""
        read = {t for t in self._graph.op(index).inputs if t >= 0}
        if any(self._graph.data(t) is not None for t in read if self._graph.maker(t) is not None):
            return "an operator writes to its constants"
        if read - self._declared - {*self._graph.inputs}:
            return UNKNOWN_SHAPES
        if id(profile) not in self._fused:
            self._fused[id(profile)] = profile, fusions(self._graph, profile).together
        others = self._fused[id(profile)][1].get(index)
        return f"{profile.name} computes it in one go with operator {others[-1]}" if others else ""

    def is_made_once(self, tensor: int) -> bool:
        """Return whether one operator makes a tensor that is no input and no variable."""
        return self._written[tensor] == 1


def _declared(model: Model, profile: Profile) -> set[int] | None:
    """Return the tensors that have the shape in the file in every run; None if the profile refuses it."""
    try:
        plan = make_plan(model, profile)
    except TflqError:
        return None
    specs = view(model).tensors
    return {i for i, spec in enumerate(specs) if plan.known[i] and plan.operands[i].shape == tuple(spec.shape)}
