"""Check that an operator has the same operands in its model as alone.

A proof is about shapes and constants. An operator alone has those in the file. In the model, other operators may
compute its shapes at run time, or write to a tensor whose buffer has data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.chains import together
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.proof.operator import UNKNOWN_SHAPES


class Surroundings:
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
            self._fused[id(profile)] = profile, together(self._graph, profile)
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
